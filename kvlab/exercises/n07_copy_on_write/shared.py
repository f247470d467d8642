"""A pool with shared blocks in the middle of its life, for the checks of notebook 07."""

from kvlab.exercises.blocks import SharedBlocks
from kvlab.exercises.n04_block_manager.books import blocks_with


def shared_with(
    tables: dict[str, list[int]], lengths: dict[str, int], free: list[int], block_size: int
) -> SharedBlocks:
    """The pool, with the count of each block read off the tables."""
    pool = blocks_with(tables, lengths, free, block_size, SharedBlocks)
    held = {block for table in tables.values() for block in table}
    pool.num_blocks = len(held) + len(free)
    pool.counts = [sum(block in table for table in tables.values()) for block in range(pool.num_blocks)]
    return pool
