"""Draw the slots of a block: filled, shared, reserved but unused, free, or free with content kept.

Up to 64 slots each has round corners and is drawn by itself. With more, neighbours of one kind are one thick
line that dashes cut into slots: a few bytes a run, whatever its length.
"""

from collections.abc import Hashable, Mapping

from kvlab.views.contents import BlockContents, Run
from kvlab.views.palette import Paint
from kvlab.views.paths import corner, num, rect
from kvlab.views.pool_layout import PoolLayout
from kvlab.views.svg import Canvas
from kvlab.views.theme import CARD, EDGE, FOCUS, INK, LINE, MUTED

KEPT = {"fill": MUTED, "fill_opacity": ".12", "stroke": MUTED, "stroke_dasharray": "3 2"}
FREE = {"fill": "none", "stroke": LINE}

_SLOT, _SECOND, _PLATE, _LABEL, _RING = range(1, 6)
_PLATE_SIZE = 16, 14


def draw_slots(
    canvas: Canvas,
    layout: PoolLayout,
    block: int,
    contents: BlockContents,
    paints: Mapping[Hashable, Paint],
    kept: int,
) -> None:
    """All slots of one block. kept: how many slots of a free block still have content."""
    for run in contents.runs:
        fills = [paints[rid].fill for rid in run.holders]
        draw = _draw_round_run if layout.fine else _draw_line_run
        draw(canvas, layout, block, run, fills)
        if layout.labelled:
            ink = INK if len(fills) > 1 else paints[run.holders[0]].ink
            _draw_positions(canvas, layout, block, run, ink)
    unused = FREE
    if contents.holders:
        fill = paints[contents.holders[0]].fill
        unused = {"fill": canvas.hatch(fill), "stroke": fill, "stroke_opacity": ".75"}
    start = max(contents.filled, kept)
    if layout.fine:
        _draw_round_rest(canvas, layout, block, contents.filled, kept, KEPT)
        _draw_round_rest(canvas, layout, block, start, layout.block_size, unused)
    else:
        if kept:
            _line(canvas, layout, block, 0, kept, _SLOT, stroke=MUTED, stroke_opacity=".35")
        if start < layout.block_size:
            _draw_line_rest(canvas, layout, block, start, unused)


def _draw_round_run(canvas: Canvas, layout: PoolLayout, block: int, run: Run, fills: list[str]) -> None:
    size = layout.slot_width
    for offset in range(run.start, run.end):
        x, y = layout.slot(block, offset)
        canvas.path(rect(x, y, size, size, 4), _SLOT, fill=fills[0], stroke=EDGE)
        if len(fills) == 2:
            canvas.path(corner(x, y, size, 4), _SECOND, fill=fills[1])
        elif len(fills) > 2:
            for i, fill in enumerate(fills[1:], 1):
                canvas.path(rect(x + i * size / len(fills), y, size / len(fills), size), _SECOND, fill=fill)


def _draw_round_rest(canvas, layout: PoolLayout, block: int, start: int, end: int, style: dict) -> None:
    for offset in range(start, end):
        x, y = layout.slot(block, offset)
        canvas.path(rect(x + 0.5, y + 0.5, layout.slot_width - 1, layout.slot_height - 1, 4), _SLOT, **style)


def _draw_line_run(canvas: Canvas, layout: PoolLayout, block: int, run: Run, fills: list[str]) -> None:
    """One line for each holder, one above the other."""
    band = layout.slot_height / len(fills)
    for i, fill in enumerate(fills):
        above = (i + 0.5) * band - layout.slot_height / 2
        _line(canvas, layout, block, run.start, run.end, _SLOT, above=above, height=band, stroke=fill)


def _draw_line_rest(canvas: Canvas, layout: PoolLayout, block: int, start: int, style: dict) -> None:
    x, y = layout.slot(block, start)
    count = layout.block_size - start
    width, height = layout.slot_width - 1, layout.slot_height - 1
    if style is FREE and layout.slot_width >= 4:
        _line(canvas, layout, block, start, layout.block_size, _SLOT, stroke=LINE)
        # A second, narrower line on top leaves the outlines.
        _line(
            canvas, layout, block, start, layout.block_size, _SECOND, inset=1, height=height - 1, stroke=CARD
        )
    elif layout.labelled:
        for offset in range(count):
            canvas.path(rect(x + offset * layout.pitch + 0.5, y + 0.5, width, height), _SLOT, **style)
    else:
        canvas.path(rect(x + 0.5, y + 0.5, layout.span(count) - 1, height), _SLOT, **style)


def _line(
    canvas: Canvas,
    layout: PoolLayout,
    block: int,
    start: int,
    end: int,
    layer: int,
    *,
    above: float = 0,
    height: float = 0,
    inset: float = 0,
    **style,
) -> None:
    """A thick line along the slots start..end-1, cut into slots by its dashes, each `inset` narrower."""
    x, y = layout.slot(block, start)
    middle = y + layout.slot_height / 2 + above
    gap = layout.pitch - layout.slot_width
    if gap:
        style["stroke_dasharray"] = f"{num(layout.slot_width - 2 * inset)} {num(gap + 2 * inset)}"
    data = f"M{num(x + inset)} {num(middle)}h{num(layout.span(end - start) - 2 * inset)}"
    canvas.path(data, layer, stroke_width=num(height or layout.slot_height), **style)


def _draw_positions(canvas: Canvas, layout: PoolLayout, block: int, run: Run, ink: str) -> None:
    """The token's position in each slot; on a plate where two colours meet."""
    plated = len(run.holders) > 1
    if plated and not layout.fine:
        inset = (layout.slot_width - _PLATE_SIZE[0]) / 2
        span = {"inset": inset, "height": _PLATE_SIZE[1]}
        _line(canvas, layout, block, run.start, run.end, _PLATE, stroke=CARD, **span)
    for offset in range(run.start, run.end):
        x, y = layout.slot(block, offset)
        position = run.first_position + offset - run.start
        draw_position(canvas, x, y, layout.slot_width, position, ink, plate=plated and layout.fine)


def draw_position(
    canvas: Canvas, x: float, y: float, size: float, position: object, ink: str, *, plate: bool = False
) -> None:
    """A token's position in the middle of a slot of this size."""
    text = str(position)
    height = min(11 if size > 21 else 10, (size - 2) / (0.6 * len(text)))
    if plate:
        width = max(_PLATE_SIZE[0], min(size - 4, 5 + 0.6 * height * len(text)))
        canvas.path(rect(x + (size - width) / 2, y + size / 2 - 7, width, 14, 3), _PLATE, fill=CARD)
    canvas.digits(x + size / 2, y + size / 2 + height * 0.36, text, height, fill=ink, layer=_LABEL)


def ring(
    canvas: Canvas, layout: PoolLayout, block: int, start: int, count: int, *, dashed: bool = False
) -> None:
    """Ring `count` slots in the accent colour: what this step is about; dashed: where it should have been."""
    x, y = layout.slot(block, start)
    width = layout.span(count)
    out = 2.5 if layout.labelled else 1.5
    radius = 6 if layout.labelled else 0 if dashed else 3
    data = rect(x - out, y - out, width + 2 * out, layout.slot_height + 2 * out, radius)
    style = {"stroke_dasharray": "4 3"} if dashed else {}
    canvas.path(data, _RING, fill="none", stroke=INK if dashed else FOCUS, stroke_width=2.5, **style)
