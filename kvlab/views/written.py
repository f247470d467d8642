"""Draw what a step wrote: its slots ringed, and an arrow that names the tokens that arrive."""

from collections.abc import Hashable, Mapping

from kvlab.block_table import Slot
from kvlab.state import State
from kvlab.views.palette import Paint
from kvlab.views.paths import arrow_head, route
from kvlab.views.pool_layout import PoolLayout
from kvlab.views.slot_drawing import ring
from kvlab.views.svg import Canvas
from kvlab.views.text import text_width
from kvlab.views.theme import FOCUS


def draw_written(
    canvas: Canvas,
    pool: PoolLayout,
    paints: Mapping[Hashable, Paint],
    state: State,
    rid: Hashable,
    slots: list[Slot],
) -> None:
    """Ring the slots written in this step; an arrow names the tokens that arrive in each block."""
    position = state.lengths.get(rid, 0) - len(slots)
    for block, offset, count, first in _runs(slots, position):
        if not (pool.shows(block) and offset >= 0 and offset + count <= state.block_size):
            continue
        ring(canvas, pool, block, offset, count)
        x, y = pool.slot_center(block, offset), pool.corner(block)[1]
        start = y - (15 if pool.labelled else 9)
        canvas.path(route([(x, start), (x, y - 4)]), 5, fill="none", stroke=FOCUS, stroke_width=1.8)
        canvas.path(arrow_head(x, y, "down", 4 if pool.labelled else 3), 5, fill=FOCUS)
        if pool.labelled:
            _name_tokens(canvas, pool, block, x, paints[rid].label, first, count)


def _name_tokens(
    canvas: Canvas, pool: PoolLayout, block: int, x: float, label: str, first: int, count: int
) -> None:
    """Name the arriving tokens beside their arrow, on the side and in the words that stay over the block."""
    left, y = pool.corner(block)
    right = left + pool.block_width + pool.column_gap
    span = f"{first}" if count == 1 else f"{first}–{first + count - 1}"
    words = f"{label}, token{'s' if count > 1 else ''} {span}"
    room_right, room_left = right - x - 8, x - 8 - left
    if text_width(words, 10.5, 700) > max(room_right, room_left):
        words = f"{label} {span}"
    to_left = text_width(words, 10.5, 700) > room_right and room_left > room_right
    place, anchor = (x - 8, "end") if to_left else (x + 8, "start")
    canvas.text(place, y - 5, words, 10.5, fill=FOCUS, weight=700, anchor=anchor)


def _runs(slots: list[Slot], position: int) -> list[tuple[int, int, int, int]]:
    """Neighbouring slots joined: (block, offset, count, first position)."""
    runs: list[list[int]] = []
    for i, slot in enumerate(slots):
        if runs and runs[-1][0] == slot.block and runs[-1][1] + runs[-1][2] == slot.offset:
            runs[-1][2] += 1
        else:
            runs.append([slot.block, slot.offset, 1, position + i])
    return [tuple(run) for run in runs]
