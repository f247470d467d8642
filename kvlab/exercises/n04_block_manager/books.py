"""Driving a learner's functions over `Blocks` and comparing every line of the books after each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvlab.block_pool import OutOfBlocks
from kvlab.exercises.blocks import Blocks
from kvlab.exercises.book_checks import compare_books
from kvlab.exercises.exercise import Refused
from kvlab.exercises.trial import Trial


def blocks_with(
    tables: dict[str, list[int]],
    lengths: dict[str, int],
    free: list[int],
    block_size: int,
    make: type[Blocks] = Blocks,
) -> Blocks:
    """A pool in the middle of its life, of the class `make`."""
    num_blocks = len(free) + sum(map(len, tables.values()))
    blocks = make(num_blocks, block_size)
    blocks.tables = {request_id: list(table) for request_id, table in tables.items()}
    blocks.lengths = dict(lengths)
    blocks.free.clear()
    blocks.free.extend(free)
    return blocks


def books(blocks: Blocks) -> dict[str, Any]:
    """The parts of the books, as plain values; counts only where blocks can be shared."""
    counts = {"counts": list(blocks.counts)} if hasattr(blocks, "counts") else {}
    return {
        "tables": {request_id: list(table) for request_id, table in blocks.tables.items()},
        "lengths": dict(blocks.lengths),
        "free": list(blocks.free),
        **counts,
    }


def told(blocks: Blocks) -> str:
    """The books in words, for the start of a sentence."""
    parts = (f"{part} {value}" for part, value in books(blocks).items())
    return f"B = {blocks.block_size}, {', '.join(parts)}"


def expect_books(blocks: Blocks, due: dict[str, Any], *, given: str, because: str) -> None:
    """Refused, naming the part, unless the books are these."""
    compare_books(lambda: books(blocks), due, given=given, because=because)


def expect_refusal(
    trial: Trial, method: Callable, blocks: Blocks, *args: Any, needed: int, given: str, because: str
) -> None:
    """The call must raise OutOfBlocks with the right figures, and the books must be as they were."""
    before, free, total = books(blocks), len(blocks.free), blocks.num_blocks
    error = trial.raises(OutOfBlocks, blocks, *args, given=given, because=because, function=method)
    why = "a call that raises must leave everything as it was"
    expect_books(blocks, before, given=f"{given}: OutOfBlocks is right, but the books changed", because=why)
    figures = (error.needed, error.free, error.total)
    if figures != (needed, free, total):
        raise Refused(
            f"{given}: expected OutOfBlocks(needed={needed}, free={free}, total={total}), because {because}; "
            f"got needed={figures[0]}, free={figures[1]}, total={figures[2]}."
        )
