"""Prefix pools in the middle of their lives, and the comparison of every line of their books."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvlab.exercises.book_checks import compare_books
from kvlab.exercises.n08_prefix_caching.pool import PrefixBlocks, sha256


def pool_with(
    num_blocks: int,
    block_size: int,
    *,
    tables: dict[str, list[int]],
    free: Sequence[int],
    prompts: dict[str, list[int]],
    cached: dict[int, list[int]],
) -> PrefixBlocks:
    """A pool with these tables and this free list.

    Args:
        cached: block -> the whole prefix that it ends; its hash is "h" and the block's id.
    """
    pool = PrefixBlocks(num_blocks, block_size, sha256)
    pool.free.clear()
    pool.free.extend(free)
    pool.tables = {request_id: list(table) for request_id, table in tables.items()}
    pool.tokens = {request_id: list(tokens) for request_id, tokens in prompts.items()}
    for table in tables.values():
        for block in table:
            pool.counts[block] += 1
    for block, prefix in cached.items():
        pool.remember(block, f"h{block}", prefix)
    return pool


def books(pool: PrefixBlocks) -> dict[str, Any]:
    """All that a learner's function may change, as plain values."""
    return {
        "tables": {request_id: list(table) for request_id, table in pool.tables.items()},
        "free": list(pool.free),
        "counts": list(pool.counts),
        "hash_of": dict(pool.hash_of),
        "found": {key: list(blocks) for key, blocks in pool.found.items()},
        "content": dict(pool.content),
        "evicted": list(pool.evicted),
        "tokens": {request_id: list(tokens) for request_id, tokens in pool.tokens.items()},
    }


def told(pool: PrefixBlocks) -> str:
    """The books in words, for the start of a sentence."""
    cached = sorted(pool.hash_of)
    return f"tables {pool.tables}, free {list(pool.free)}, counts {pool.counts}, cached blocks {cached}"


def expect_books(pool: PrefixBlocks, due: dict[str, Any], *, given: str, because: str) -> None:
    """Refused, naming the part, unless the books are these."""
    compare_books(lambda: books(pool), due, given=given, because=because)
