"""Where prompts, their hashes and the free queue go in the picture of the prefix cache."""

from collections.abc import Hashable, Sequence

from kvlab.views.palette import paints
from kvlab.views.pool_layout import MARGIN, WIDTH
from kvlab.views.prefix_steps import PrefixFrame

MOST_PROMPTS = 4
MOST_TILES = 6  # tokens a block, up to which each has its own tile
BOX, PILL, ROW = 50, 17, 106
QUEUE_BOX = 54

_NAME, _TOP = 58, 8
_GAP = 16
_MOST_BLOCKS = 20  # more would make a redraw slow
_LEAST, _MOST = 132, 200
_QUEUE_LEAST, _QUEUE_MOST, _QUEUE_GAP, _MOST_QUEUED = 100, 122, 8, 8


class PrefixLayout:
    """Rows for the prompts, columns for their blocks, and the lane of the free queue below.

    num_columns: blocks of a prompt that are drawn; longer ones show their beginning.
    """

    def __init__(self, frames: Sequence[PrefixFrame]):
        first = frames[0]
        self.block_size = first.state.block_size
        self.ids: list[Hashable] = list(first.tokens)[:MOST_PROMPTS]
        self.paints = paints(first.tokens)
        lengths = [len(frame.tokens[rid]) for frame in frames for rid in self.ids]
        longest = max(1, max(-(-length // self.block_size) for length in lengths))
        room = WIDTH - 2 * MARGIN - _NAME
        most = int((room + _GAP) // (_LEAST + _GAP))
        self.num_columns = min(longest, most, _MOST_BLOCKS // len(self.ids))
        self.box_width = min(_MOST, (room + _GAP) / self.num_columns - _GAP)
        self.pitch = self.box_width + _GAP
        self.left = MARGIN + _NAME
        self.tiles = self.block_size <= MOST_TILES
        self.queue_title = _TOP + len(self.ids) * ROW + 16
        self.queue_top = self.queue_title + 26
        usable = WIDTH - 2 * MARGIN
        slots = min(max(len(frame.state.free) for frame in frames), _MOST_QUEUED)
        self.queue_width = min(_QUEUE_MOST, max(_QUEUE_LEAST, (usable + 8) / max(slots, 1) - _QUEUE_GAP))
        self.queue_room = _MOST_QUEUED
        self.legend_y = self.queue_top + QUEUE_BOX + 26
        self.width = WIDTH
        self.height = self.legend_y + 10

    def row(self, index: int) -> float:
        """The top of a prompt's row."""
        return _TOP + index * ROW

    def box(self, row: int, column: int) -> tuple[float, float]:
        """Upper left corner of a prompt's block."""
        return self.left + column * self.pitch, self.row(row)

    def pill(self, row: int, column: int) -> tuple[float, float]:
        """Upper left corner of the block's hash."""
        x, y = self.box(row, column)
        return x + 8, y + BOX + 10

    def queue_box(self, place: int) -> tuple[float, float]:
        """Upper left corner of a free block, by its place in the queue."""
        return MARGIN + place * (self.queue_width + _QUEUE_GAP), self.queue_top
