"""Where the blocks of a pool go in a figure: as many columns as fit, rows of about equal length."""

from collections.abc import Iterable
from functools import cached_property
from math import ceil

from kvlab.views.paths import rect

WIDTH = 960
MARGIN = 12
MOST_SHOWN = 256  # more blocks than this cannot be told apart on one page

_LABELLED_SLOTS = 192  # 16 blocks of 12 slots: up to here every slot shows its token's position
_FINE_SLOTS = 64  # up to here every slot is drawn by itself
_WIDE_SLOTS = 8  # slots a block, up to which they are full size
_LABELLED_BLOCKS = 24
_NAMED_BLOCKS = 10  # up to here a box says "block 3"; beyond, only 3
_CROWDED = 100


class PoolLayout:
    """Geometry of a pool's figure, in pixels.

    Small pools are `labelled`: square slots with room for a token's position, drawn in the `fine` style when
    they are few. In other pools the slots shrink.
    `lanes` leaves room above each row of blocks for arrows, `tail` under the last row too. `must_show` lists
    blocks to show even when the pool is too large to draw whole. In a `crowded` one boxes are plain.
    """

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        top: float,
        *,
        lanes: bool = False,
        tail: bool = False,
        must_show: Iterable[int] = (),
    ):
        self.block_size = block_size
        self.labelled = num_blocks * block_size <= _LABELLED_SLOTS and (
            num_blocks <= _LABELLED_BLOCKS and block_size <= 16
        )
        self.fine = self.labelled and num_blocks * block_size <= _FINE_SLOTS
        self.shown = _choose(num_blocks, must_show)
        self.crowded = len(self.shown) > _CROWDED
        self.named = num_blocks <= _NAMED_BLOCKS
        self.hidden = num_blocks - len(self.shown)
        self._index = {block: i for i, block in enumerate(self.shown)}
        self._size(num_blocks, lanes)
        usable = WIDTH - 2 * MARGIN
        most = max(1, int((usable + self.column_gap) // (self.block_width + self.column_gap)))
        self.rows = ceil(len(self.shown) / most)
        self.columns = ceil(len(self.shown) / self.rows)
        self.top = top
        self._corners = {block: self._place(i) for block, i in self._index.items()}
        self.bottom = top + self.rows * (self.lane + self.block_height) + (self.lane if tail else 0)

    def _size(self, num_blocks: int, lanes: bool) -> None:
        size = self.block_size
        if self.labelled:
            side = 26 if size <= _WIDE_SLOTS else 21
            self.pitch, self.slot_width, self.slot_height = side + (3 if side > 21 else 2), side, side
            self.pad, self.head, self.foot, self.radius = 7, 22, 8, 9
            self.column_gap, self.lane, least = 10, 34 if lanes else 16, 92
        else:
            self.pitch = max(1.5, min(12, 96 // size)) if size <= 256 else 384 / size
            self.slot_width = self.pitch - 1 if self.pitch >= 3 else self.pitch
            self.slot_height = 12
            self.pad, self.head, self.foot, self.radius = 4, 16, 4, 4
            self.column_gap, self.lane, least = 8, 14 if lanes else 10, 46 if num_blocks <= 100 else 54
        self.block_width = max(least, self.span(size) + 2 * self.pad)
        self.block_height = self.head + self.slot_height + self.foot

    def shows(self, block: object) -> bool:
        """Whether the block is in the figure."""
        return block in self._index

    def corner(self, block: int) -> tuple[float, float]:
        """The block's upper left corner."""
        return self._corners[block]

    def _place(self, index: int) -> tuple[float, float]:
        row, column = divmod(index, self.columns)
        x = MARGIN + column * (self.block_width + self.column_gap)
        return x, self.top + self.lane + row * (self.lane + self.block_height)

    @cached_property
    def boxes(self) -> str:
        """Path data of all boxes: most frames of a stepper draw the same."""
        radius = 0 if self.crowded else self.radius
        size = self.block_width, self.block_height
        return "".join(rect(x, y, *size, radius) for x, y in self._corners.values())

    def row(self, block: int) -> int:
        """The row that the block is drawn in."""
        return self._index[block] // self.columns

    def slot(self, block: int, offset: int) -> tuple[float, float]:
        """The slot's upper left corner."""
        x, y = self.corner(block)
        return x + self.pad + offset * self.pitch, y + self.head

    def span(self, count: int) -> float:
        """The width of `count` neighbouring slots."""
        return count * self.pitch - (self.pitch - self.slot_width)

    def slot_center(self, block: int, offset: int) -> float:
        """The x of the middle of a slot."""
        return self.slot(block, offset)[0] + self.slot_width / 2

    @property
    def right(self) -> float:
        """The x where the last column ends."""
        return MARGIN + self.columns * (self.block_width + self.column_gap) - self.column_gap


def _choose(num_blocks: int, must_show: Iterable[int]) -> list[int]:
    if num_blocks <= MOST_SHOWN:
        return list(range(num_blocks))
    chosen = set(sorted(set(must_show))[:MOST_SHOWN])
    for block in range(num_blocks):
        if len(chosen) == MOST_SHOWN:
            break
        chosen.add(block)
    return sorted(chosen)
