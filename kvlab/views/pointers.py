"""Draw how tables point to blocks that are drawn in another request's row: a chip, a line, an arrow head."""

from collections.abc import Collection, Hashable
from typing import NamedTuple

from kvlab.state import State
from kvlab.views.contents import is_block
from kvlab.views.paths import arrow_head, route
from kvlab.views.sharing_layout import CHIP_HEIGHT, PlacedBlocks, SharingLayout
from kvlab.views.svg import Canvas
from kvlab.views.tables_drawing import draw_chip
from kvlab.views.theme import FOCUS, STRONG

_LANE, _FIRST_LANE, _LANES = 6, 9, 4


class Pointer(NamedTuple):
    """A table entry that names a block drawn elsewhere: where its chip is and what it names."""

    request_id: Hashable
    block: int
    x: float
    middle: float


def pointers(layout: SharingLayout, placed: PlacedBlocks, state: State) -> list[Pointer]:
    """Every entry in view whose block is not drawn in the entry's own cell."""
    first, found = layout.first_entry(state), []
    for rid, middle in layout.middles(state).items():
        for entry, block in enumerate(state.tables.get(rid, ())):
            x = layout.column(entry - first)
            if entry < first:
                continue
            at_home = placed.shows(block) and placed.corner(block) == (x, middle - placed.block_height / 2)
            if not at_home:
                found.append(Pointer(rid, block, x, middle))
    return found


def draw_pointers(
    canvas: Canvas,
    layout: SharingLayout,
    placed: PlacedBlocks,
    state: State,
    lit: Hashable | None,
    wrong: Collection[int],
) -> None:
    """A chip for each entry that points to another row, joined to its block. lit: a request to ring."""
    found = pointers(layout, placed, state)
    lanes = _assign_lanes(found, placed)
    for pointer in found:
        rid, block, x, middle = pointer
        ringed = rid == lit
        bad = block in wrong or not is_block(block, state.num_blocks)
        top = middle - CHIP_HEIGHT / 2
        draw_chip(canvas, x, top, block, layout.paints[rid].fill, ringed=ringed, wrong=bad)
        if not (placed.shows(block) and placed.corner(block)[0] == x):
            continue
        target = placed.corner(block)[1] + placed.block_height / 2
        lane = x - _FIRST_LANE - _LANE * lanes[block, x]
        stroke = FOCUS if ringed else STRONG
        width = 2 if ringed else 1.5
        points = [(x - (3 if ringed else 0), middle), (lane, middle), (lane, target), (x - 1, target)]
        canvas.path(route(points), 3 if ringed else 0, fill="none", stroke=stroke, stroke_width=width)
        canvas.path(arrow_head(x - 0.5, target, "right", 3.5), 3 if ringed else 0, fill=stroke)


def _assign_lanes(found: list[Pointer], placed: PlacedBlocks) -> dict[tuple[int, float], int]:
    """A lane for each block's line in its column, so that no two lie on each other."""
    spans: dict[tuple[int, float], list[float]] = {}
    for pointer in found:
        if placed.shows(pointer.block):
            ends = spans.setdefault((pointer.block, pointer.x), [placed.corner(pointer.block)[1]])
            ends.append(pointer.middle)
    lanes: dict[tuple[int, float], int] = {}
    for (block, x), ends in sorted(spans.items(), key=lambda item: max(item[1]) - min(item[1])):
        taken = {
            lane
            for (other, other_x), lane in lanes.items()
            if other_x == x and max(min(ends), min(spans[other, x])) <= min(max(ends), max(spans[other, x]))
        }
        free = [lane for lane in range(_LANES) if lane not in taken]
        lanes[block, x] = free[0] if free else _LANES - 1
    return lanes
