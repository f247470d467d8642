"""What a block manager looks like from outside at one moment, and what is wrong with it.

Works on any object with the smallest manager's interface (`block_table`, `length`, `free_order`,
`num_blocks`, `block_size`), so that a learner's own manager is drawn and judged like ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class State:
    """A manager's books: tables and lengths by request, and the free list, next to be handed out first.

    may_share: whether two tables may hold one block, since the manager can fork or has a prefix cache.
    ref_counts: the manager's own counts by block, where it has any.
    hole: the table entry of a block that was given back before its request ended, where there are such.
    """

    num_blocks: int
    block_size: int
    tables: Mapping[Hashable, tuple[int, ...]]
    lengths: Mapping[Hashable, int]
    free: tuple[int, ...]
    null_block: int | None = None
    may_share: bool = False
    ref_counts: tuple[int, ...] | None = None
    hole: int | None = None

    def holders(self, block: int) -> list[Hashable]:
        """The requests whose tables name the block."""
        return [request_id for request_id, table in self.tables.items() if block in table]

    def slots_filled(self, block: int) -> int:
        """How many of the block's slots hold tokens, for the holder that fills it furthest."""
        filled = 0
        for request_id, table in self.tables.items():
            for logical_block, held in enumerate(table):
                if held == block:
                    in_block = self.lengths[request_id] - logical_block * self.block_size
                    filled = max(filled, min(self.block_size, in_block))
        return filled


class Violation(NamedTuple):
    """One broken rule.

    kind: "unknown block", "double free", "held and free", "leak", "shared by mistake", "wrong count",
    "too few blocks" or "too many blocks"; block is None for the last two.
    """

    kind: str
    block: int | None
    sentence: str


def snapshot(manager, request_ids: Iterable[Hashable]) -> State:
    """The manager's books for the given live requests.

    Raises:
        TypeError: a method of the manager returned something that is no table, length or free list.
    """
    tables, lengths = {}, {}
    for request_id in request_ids:
        tables[request_id] = _ids(manager.block_table(request_id), f"block_table({request_id!r})")
        length = manager.length(request_id)
        if not isinstance(length, int):
            raise TypeError(f"length({request_id!r}) returned {length!r}, not a number of tokens")
        lengths[request_id] = length
    null_block = getattr(getattr(manager, "_pool", manager), "null_block", None)
    counts = getattr(manager, "ref_count", None)
    return State(
        num_blocks=manager.num_blocks,
        block_size=manager.block_size,
        tables=tables,
        lengths=lengths,
        free=_ids(manager.free_order(), "free_order()"),
        null_block=null_block,
        may_share=hasattr(manager, "fork") or getattr(manager, "prefix_cache", None) is not None,
        ref_counts=tuple(counts(block) for block in range(manager.num_blocks)) if counts else None,
        hole=getattr(manager, "hole", None) if getattr(manager, "window", None) else None,
    )


def violations(state: State) -> list[Violation]:
    """Every rule of the block manager that the state breaks; empty when it is sound."""
    return [*_of_blocks(state), *_of_lengths(state)]


def _ids(value: object, where: str) -> tuple[int, ...]:
    try:
        blocks = tuple(value)
    except TypeError:
        raise TypeError(f"{where} returned {value!r}, not a list of block ids") from None
    if not all(isinstance(block, int) for block in blocks):
        raise TypeError(f"{where} returned {value!r}: block ids are whole numbers")
    return blocks


def _of_blocks(state: State) -> Iterator[Violation]:
    queued = Counter(state.free)
    held = {block for table in state.tables.values() for block in table if block != state.hole}
    usable = {block for block in range(state.num_blocks) if block != state.null_block}
    for block in sorted({*queued, *held} - usable):
        yield Violation("unknown block", block, f"block {block} is in use, but the pool has no such block")
    for block in sorted(usable):
        holders, times = state.holders(block), queued[block]
        if times > 1:
            yield Violation("double free", block, f"block {block} is on the free list {times} times")
        if times and holders:
            who = _names(holders)
            yield Violation("held and free", block, f"block {block} is free, yet in the table of {who}")
        if not times and not holders:
            yield Violation("leak", block, f"block {block} is neither free nor in any table: it is lost")
        if len(holders) > 1 and not state.may_share:
            yield Violation(
                "shared by mistake", block, f"block {block} is in the tables of {_names(holders)}"
            )
        if state.ref_counts and state.ref_counts[block] != len(holders):
            count = state.ref_counts[block]
            yield Violation(
                "wrong count", block, f"block {block} has count {count}, but {len(holders)} holders"
            )


def _of_lengths(state: State) -> Iterator[Violation]:
    for request_id, table in state.tables.items():
        length = state.lengths[request_id]
        needed = -(-length // state.block_size)
        if len(table) != needed:
            kind = "too few blocks" if len(table) < needed else "too many blocks"
            sentence = (
                f"{request_id} has {length} tokens, so {needed} blocks of {state.block_size}, "
                f"but its table is {list(table)}"
            )
            yield Violation(kind, None, sentence)


def _names(request_ids: list[Hashable]) -> str:
    return " and ".join(str(request_id) for request_id in request_ids)
