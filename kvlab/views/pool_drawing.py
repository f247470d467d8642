"""Draw the physical blocks of a pool: boxes, slots in their request's colour, holders, counts."""

from collections.abc import Hashable, Iterable, Mapping

from kvlab.views.contents import BlockContents, Run
from kvlab.views.palette import Paint
from kvlab.views.paths import corner, num, rect
from kvlab.views.pool_layout import MARGIN, PoolLayout
from kvlab.views.svg import Canvas
from kvlab.views.theme import CARD, EDGE, FOCUS, INK, LINE, MUTED, STRONG

KEPT = {"fill": MUTED, "fill_opacity": ".12", "stroke": MUTED, "stroke_dasharray": "3 2"}

_BOX, _SLOT, _SECOND, _PLATE, _LABEL, _RING = range(6)


def draw_pool(
    canvas: Canvas,
    layout: PoolLayout,
    blocks: Mapping[int, BlockContents],
    paints: Mapping[Hashable, Paint],
    *,
    wrong: Iterable[int] = (),
    cached: Mapping[int, int] | None = None,
) -> None:
    """Draw the blocks that the layout shows.

    wrong: blocks to mark as breaking a rule. cached: free blocks that still keep content, and in how many
    of their slots.
    """
    wrong, cached = set(wrong), cached or {}
    for block in layout.shown:
        contents = blocks[block]
        kept = cached.get(block, 0) if contents.kind == "free" else 0
        _draw_box(canvas, layout, block, block in wrong, kept)
        _draw_header(canvas, layout, block, contents, paints, block in wrong, kept)
        for run in contents.runs:
            _draw_run(canvas, layout, block, run, paints)
        _draw_rest(canvas, layout, block, contents, paints, kept)
    if layout.hidden:
        note = f"{layout.hidden:,} more blocks are not drawn."
        canvas.text(MARGIN, layout.bottom + 14, note, fill=MUTED)


def _draw_box(canvas: Canvas, layout: PoolLayout, block: int, wrong: bool, kept: int) -> None:
    data = rect(
        *layout.corner(block), layout.block_width, layout.block_height, 0 if layout.crowded else layout.radius
    )
    if wrong:
        canvas.path(data, _BOX, fill=CARD, stroke=FOCUS, stroke_width=2.5, stroke_dasharray="7 3")
    elif kept:
        canvas.path(data, _BOX, fill=CARD, stroke=STRONG, stroke_width=1.2, stroke_dasharray="4 3")
    else:
        canvas.path(data, _BOX, fill=CARD, stroke=STRONG, stroke_width=1.2)


def _draw_header(canvas, layout, block, contents, paints, wrong, kept) -> None:
    x, y = layout.corner(block)
    right = x + layout.block_width - layout.pad
    words = {"free": "free, cached" if kept else "free", "null": "null", "lost": "lost", "held": ""}[
        contents.kind
    ]
    if layout.labelled:
        if layout.named:
            left = canvas.text(x + 9, y + 15.5, f"block {block}", 10.5, fill=MUTED, layer=_LABEL)
        else:
            canvas.digits(x + 9, y + 15.5, block, 11, fill=MUTED, anchor="start", layer=_LABEL)
            left = x + 9 + 7 * len(str(block))
        if wrong:
            right = _badge(canvas, right, y + 4, "!", FOCUS, 15)
        if words:
            canvas.text(right, y + 15.5, words, 10, fill=MUTED, anchor="end", layer=_LABEL)
        _draw_holders(canvas, left + 4, right, y + 4, 15, contents, paints)
        return
    canvas.digits(x + 4, y + 11.5, block, 9, fill=MUTED, anchor="start", layer=_LABEL, weight=400)
    if wrong:
        right = _badge(canvas, right, y + 3, "!", FOCUS, 11)
    _draw_holders(canvas, x + 8 + 5.4 * len(str(block)), right, y + 3, 11, contents, paints, layout.crowded)


def _draw_holders(canvas, left, right, y, height, contents, paints, plain=False) -> None:
    """The holders' letters on their colours and how many they are, from the right, as far as they fit."""
    if len(contents.holders) > 1:
        right = _badge(canvas, right, y, f"×{len(contents.holders)}", "" if plain else INK, height)
    for rid in reversed(contents.holders):
        paint = paints[rid]
        if right - _badge_width(paint.label, height) < left:
            return
        right = _badge(canvas, right, y, paint.label, "" if plain else paint.fill, height, paint.ink)


def _badge_width(text: str, height: float) -> float:
    return round((height - 4.5) * 0.6 * len(text) + height * 0.55)


def _badge(canvas, right, y, text, fill, height, ink=CARD) -> float:
    """A small filled label that ends at `right`; returns where the next one may end. No fill: plain ink."""
    width = _badge_width(text, height)
    if not fill:
        canvas.digits(right - 1, y + 8.5, text, 9, anchor="end", layer=_LABEL, mono=True)
        return right - 2 - 5.4 * len(text)
    radius = height // 2 if fill == INK else 4
    canvas.path(rect(right - width, y, width, height, radius), _PLATE, fill=fill)
    size = height - 4.5 if height > 12 else height - 2.5
    size = min(size, (width - 3) / (0.6 * len(text)))
    baseline = y + height / 2 + size * 0.36
    canvas.digits(right - width / 2, baseline, text, size, fill=ink, weight=700, layer=_LABEL, mono=True)
    return right - width - 3


def _draw_run(canvas: Canvas, layout: PoolLayout, block: int, run: Run, paints) -> None:
    fills = [paints[rid].fill for rid in run.holders]
    if not layout.labelled:
        x, y = layout.slot(block, run.start)
        band = layout.slot_height / len(fills)
        for i, fill in enumerate(fills):
            line = slot_line(layout, x, y + (i + 0.5) * band, run.end - run.start)
            canvas.path(line, _SLOT, stroke=fill, stroke_width=num(band), **dashes(layout))
        return
    for offset in range(run.start, run.end):
        x, y = layout.slot(block, offset)
        size = layout.slot_width
        canvas.path(rect(x, y, size, size, 4), _SLOT, fill=fills[0], stroke=EDGE)
        if len(fills) == 2:
            canvas.path(corner(x, y, size, 4), _SECOND, fill=fills[1])
        for i, fill in enumerate(fills[1:], 1):
            if len(fills) > 2:
                canvas.path(rect(x + i * size / len(fills), y, size / len(fills), size), _SECOND, fill=fill)
        ink = INK if len(fills) > 1 else paints[run.holders[0]].ink
        draw_position(canvas, x, y, size, run.first_position + offset - run.start, ink, plate=len(fills) > 1)


def draw_position(
    canvas: Canvas, x: float, y: float, size: float, position: object, ink: str, *, plate: bool = False
) -> None:
    """A token's position in the middle of its slot; on a plate where two colours meet."""
    text = str(position)
    height = 11 if len(text) < 4 else 9
    if plate:
        width = min(size - 4, 5 + 0.6 * height * len(text))
        canvas.path(rect(x + (size - width) / 2, y + size / 2 - 7, width, 14, 3), _PLATE, fill=CARD)
    canvas.digits(x + size / 2, y + size / 2 + height * 0.36, text, height, fill=ink, layer=_LABEL)


def _draw_rest(canvas, layout, block, contents: BlockContents, paints, kept: int) -> None:
    """The slots without a token: hatched in a held block, else outlined, dashed where content is kept."""
    if contents.filled >= layout.block_size:
        return
    if contents.holders:
        fill = paints[contents.holders[0]].fill
        style = {"fill": canvas.hatch(fill), "stroke": fill, "stroke_opacity": ".75"}
    else:
        style = {"fill": "none", "stroke": LINE}
    if not layout.labelled:
        _draw_small_rest(canvas, layout, block, contents, style, kept)
        return
    for offset in range(contents.filled, layout.block_size):
        x, y = layout.slot(block, offset)
        data = rect(x + 0.5, y + 0.5, layout.slot_width - 1, layout.slot_height - 1, 4)
        canvas.path(data, _SLOT, **(KEPT if offset < kept else style))


def _draw_small_rest(canvas, layout, block, contents: BlockContents, style: dict, kept: int) -> None:
    """The same for small slots, a whole run at a time."""
    start = max(contents.filled, kept)
    count = layout.block_size - start
    middle = layout.slot(block, 0)[1] + layout.slot_height / 2
    if kept:
        line = slot_line(layout, layout.slot(block, 0)[0], middle, kept)
        canvas.path(line, _SLOT, stroke=MUTED, stroke_opacity=".35", stroke_width=12, **dashes(layout))
    if not count:
        return
    x, y = layout.slot(block, start)
    if contents.holders or layout.slot_width < 4:
        width = count * layout.pitch - (layout.pitch - layout.slot_width) - 1
        canvas.path(rect(x + 0.5, y + 0.5, width, layout.slot_height - 1), _SLOT, **style)
        return
    line = slot_line(layout, x, middle, count)
    canvas.path(line, _SLOT, stroke=LINE, stroke_width=layout.slot_height, **dashes(layout))
    # A second, narrower line on top leaves the outlines.
    inner = f"{num(layout.slot_width - 2)} {num(layout.pitch - layout.slot_width + 2)}"
    hollow = {"stroke_dasharray": inner, "stroke_dashoffset": -1}
    canvas.path(line, _SECOND, stroke=CARD, stroke_width=layout.slot_height - 2, **hollow)


def slot_line(layout: PoolLayout, x: float, y: float, count: int) -> str:
    """A line along `count` small slots; `dashes` cuts it into the slots."""
    return f"M{num(x)} {num(y)}h{num(count * layout.pitch - (layout.pitch - layout.slot_width))}"


def dashes(layout: PoolLayout) -> dict[str, str]:
    """The attributes that cut a slot line at the gaps between slots."""
    gap = layout.pitch - layout.slot_width
    return {"stroke_dasharray": f"{num(layout.slot_width)} {num(gap)}"} if gap else {}


def ring(
    canvas: Canvas, layout: PoolLayout, block: int, start: int, count: int, *, dashed: bool = False
) -> None:
    """Ring `count` slots in the accent colour: what this step is about; dashed: where it should have been."""
    x, y = layout.slot(block, start)
    width = count * layout.pitch - (layout.pitch - layout.slot_width)
    out = 2.5 if layout.labelled else 1.5
    data = rect(x - out, y - out, width + 2 * out, layout.slot_height + 2 * out, 6 if layout.labelled else 3)
    style = {"stroke_dasharray": "4 3"} if dashed else {}
    canvas.path(data, _RING, fill="none", stroke=INK if dashed else FOCUS, stroke_width=2.5, **style)
