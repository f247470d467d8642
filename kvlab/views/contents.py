"""Who is in which slot of which block, read from a State without trusting it.

A learner's manager may hand out blocks that do not exist or hold one block twice. The figures draw what the
tables say, so nothing here assumes that they are right.
"""

from collections.abc import Hashable
from typing import NamedTuple

from kvlab.state import State


class Run(NamedTuple):
    """Neighbouring slots with the same holders: offsets start..end-1; first_position is the token number at
    `start` for the first holder."""

    start: int
    end: int
    holders: tuple[Hashable, ...]
    first_position: int


class BlockContents(NamedTuple):
    """One physical block as the tables see it. filled: slots with tokens; kind: held, free, null or lost."""

    kind: str
    holders: tuple[Hashable, ...]
    runs: tuple[Run, ...]
    filled: int


def is_block(entry: object, num_blocks: int) -> bool:
    """Whether a table entry names a block of the pool."""
    try:
        return not isinstance(entry, bool) and 0 <= entry < num_blocks and entry == int(entry)
    except (TypeError, ValueError):
        return False


def read_blocks(state: State) -> dict[int, BlockContents]:
    """The contents of every block of the pool, by its id."""
    uses: dict[int, list[tuple[Hashable, int, int]]] = {}
    for request_id, table in state.tables.items():
        length = state.lengths.get(request_id, 0)
        for logical_block, block in enumerate(table):
            if block != state.hole and is_block(block, state.num_blocks):
                first = logical_block * state.block_size
                filled = max(0, min(state.block_size, length - first))
                uses.setdefault(int(block), []).append((request_id, first, filled))
    free = set(state.free)
    return {
        block: _contents(uses.get(block, []), block in free, block == state.null_block)
        for block in range(state.num_blocks)
    }


def _contents(uses: list[tuple[Hashable, int, int]], free: bool, null: bool) -> BlockContents:
    holders = tuple(dict.fromkeys(rid for rid, _, _ in uses))
    kind = "held" if holders else "free" if free else "null" if null else "lost"
    runs, start = [], 0
    for end in sorted({filled for _, _, filled in uses} - {0}):
        inside = [use for use in uses if use[2] >= end]
        present = tuple(dict.fromkeys(rid for rid, _, _ in inside))
        runs.append(Run(start, end, present, inside[0][1] + start))
        start = end
    return BlockContents(kind, holders, tuple(runs), start)


def request_ids(states: list[State]) -> list[Hashable]:
    """Every request that appears in the states, in order of first appearance."""
    return list(dict.fromkeys(rid for state in states for rid in state.tables))
