"""Where tables and blocks go in the picture of sharing: a row for each request, a column for each entry.

Every physical block is drawn once, in the row of the request that it was allocated for, also after that
request's end. Other tables that hold it point to it, so a fork's table is mostly pointers.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

from kvlab.recording import Frame
from kvlab.state import State
from kvlab.views.contents import is_block
from kvlab.views.fork_tree import TreeRow, fork_tree
from kvlab.views.palette import paints
from kvlab.views.pool_layout import MARGIN, WIDTH, PoolLayout
from kvlab.views.tables_drawing import CHIP, name_width

INDENT = 20
MOST_ROWS = 8
MOST_DEPTH = 5
GUTTER = 30  # left of each column, for the lines that point to its blocks
BESIDE = 26  # right of a block, for a word or a copy's arrow
CHIP_HEIGHT = 22

_LENGTH = 46
_TITLE = 100  # room for the tree's title
_HEAD = 22
_LEAST_COLUMNS = 2


class Cell(NamedTuple):
    """A place in the picture: the request whose row it is in, and the table entry."""

    row: Hashable
    entry: int


class PlacedBlocks(PoolLayout):
    """A pool's geometry with every block where the caller puts it."""

    def __init__(self, sizes: PoolLayout, corners: dict[int, tuple[float, float]]):
        self.__dict__.update(sizes.__dict__)
        self.shown, self.hidden, self.column_gap = list(corners), 0, BESIDE
        self._corners = corners

    def shows(self, block: object) -> bool:
        """Whether the block is in the figure."""
        return block in self._corners

    def corner(self, block: int) -> tuple[float, float]:
        """The block's upper left corner."""
        return self._corners[block]


class SharingLayout:
    """Rows, columns and each block's cell for all frames of a recording, so that nothing jumps.

    With more than `most_rows` requests the rows go to those that are live.
    """

    def __init__(self, frames: Sequence[Frame], top: float, most_rows: int = MOST_ROWS):
        states = [frame.state for frame in frames]
        self.tree = {row.request_id: row for row in fork_tree(frames)}
        self.paints = paints(sorted(self.tree, key=_first_seen(states)))
        self.most = most_rows
        self.more = len(self.tree) > most_rows
        self.homes = _homes(states, self.rows_for)
        held = max((len(homes) for homes in self.homes), default=1)
        self.sizes = PoolLayout(max(1, held), states[0].block_size, 0, lanes=True)
        self.gap = 38 if self.sizes.labelled else 34
        self._tall = {cell.row for homes in self.homes for cell in homes.values()}
        deepest = (self.indent(row) + name_width(rid, self.paints[rid]) for rid, row in self.tree.items())
        self.start = MARGIN + max(max(deepest, default=0), _TITLE) + _LENGTH + 8
        self.pitch = GUTTER + self.sizes.block_width
        longest = max((len(table) for state in states for table in state.tables.values()), default=0)
        room = int((WIDTH - BESIDE - self.start) // self.pitch)
        self.columns = max(1, min(room, max(longest, _LEAST_COLUMNS)))
        self.top = top
        rows = max((len(self.rows_for(state)) for state in states), default=0)
        if self.more:
            self.bottom = top + _HEAD + rows * self._row_height(None) + 18
        else:
            self.bottom = top + _HEAD + sum(self._row_height(rid) for rid in self.tree)

    @property
    def right(self) -> float:
        """The x where the last column ends."""
        return self.start + self.columns * self.pitch

    def indent(self, row: TreeRow) -> float:
        """How far a row's name stands to the right."""
        return INDENT * min(row.depth, MOST_DEPTH)

    def rows_for(self, state: State) -> list[Hashable]:
        """The requests that have a row in this state, from the top."""
        if not self.more:
            return list(self.tree)
        return [rid for rid in self.tree if rid in state.tables][: self.most]

    def first_entry(self, state: State) -> int:
        """The table entry in the first column: where tables are too long, their ends are shown."""
        longest = max((len(state.tables.get(rid, ())) for rid in self.rows_for(state)), default=0)
        return max(0, longest - self.columns)

    def column(self, place: int) -> float:
        """The x of a column's blocks."""
        return self.start + place * self.pitch + GUTTER

    def middles(self, state: State) -> dict[Hashable, float]:
        """The y of the middle of each row."""
        y, found = self.top + _HEAD, {}
        for rid in self.rows_for(state):
            height = self._row_height(rid)
            tall = self.more or rid in self._tall
            found[rid] = y + (self.gap / 2 + 8 + self.sizes.block_height / 2 if tall else CHIP_HEIGHT / 2 + 6)
            y += height
        return found

    def placed(self, state: State, step: int) -> PlacedBlocks:
        """Every block in its cell, as far as there is room."""
        first, middles = self.first_entry(state), self.middles(state)
        corners = {}
        for block, cell in self.homes[step].items():
            if cell.row in middles and 0 <= cell.entry - first < self.columns:
                y = middles[cell.row] - self.sizes.block_height / 2
                corners[block] = (self.column(cell.entry - first), y)
        return PlacedBlocks(self.sizes, corners)

    def chip(self, x: float, middle: float) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of a pointer in a row."""
        return x, middle - CHIP_HEIGHT / 2, x + CHIP, middle + CHIP_HEIGHT / 2

    def _row_height(self, rid: Hashable) -> float:
        if self.more or rid in self._tall:
            return self.sizes.block_height + self.gap
        return CHIP_HEIGHT + 12


def _first_seen(states: list[State]):
    seen: dict[Hashable, int] = {}
    for state in states:
        for rid in state.tables:
            seen.setdefault(rid, len(seen))
    return lambda rid: seen[rid]


def _homes(states: list[State], rows_for: Callable[[State], list[Hashable]]) -> list[dict[int, Cell]]:
    """Each frame's cell for each held block: the old one as long as it can be, else its first holder's."""
    found: list[dict[int, Cell]] = []
    before: dict[int, Cell] = {}
    for state in states:
        rows = rows_for(state)
        homes: dict[int, Cell] = {}
        for rid in rows:
            for entry, block in enumerate(state.tables.get(rid, ())):
                if not is_block(block, state.num_blocks) or block in homes:
                    continue
                old = before.get(block)
                stays = old is not None and old.row in rows and _is_unclaimed(state, old, block)
                homes[block] = old if stays else Cell(rid, entry)
        found.append(homes)
        before = homes
    return found


def _is_unclaimed(state: State, cell: Cell, block: int) -> bool:
    """Whether a cell is still the block's, or nobody's: its row's request has ended."""
    table = state.tables.get(cell.row)
    return table is None or (cell.entry < len(table) and table[cell.entry] == block)
