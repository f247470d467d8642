"""Draw the physical blocks of a pool: boxes, slots in their request's colour, holders, counts."""

from collections.abc import Hashable, Iterable, Mapping

from kvlab.views.contents import BlockContents
from kvlab.views.palette import Paint
from kvlab.views.paths import rect
from kvlab.views.pool_layout import MARGIN, PoolLayout
from kvlab.views.slot_drawing import draw_slots
from kvlab.views.svg import Canvas
from kvlab.views.theme import CARD, FOCUS, INK, MUTED, STRONG

_MOST_LETTERS = 4

_PLAIN = {"fill": CARD, "stroke": STRONG, "stroke_width": 1.2}
_BOX, _PLATE, _LABEL = 0, 3, 4


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
    alike = not wrong and not cached
    if alike:
        canvas.path(layout.boxes, _BOX, **_PLAIN)
    for block in layout.shown:
        contents = blocks[block]
        kept = cached.get(block, 0) if contents.kind == "free" else 0
        if not alike:
            _draw_box(canvas, layout, block, block in wrong, kept)
        _draw_header(canvas, layout, block, contents, paints, block in wrong, kept)
        draw_slots(canvas, layout, block, contents, paints, kept)
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
        canvas.path(data, _BOX, **_PLAIN, stroke_dasharray="4 3")
    else:
        canvas.path(data, _BOX, **_PLAIN)


def _draw_header(canvas, layout, block, contents, paints, wrong, kept) -> None:
    x, y = layout.corner(block)
    right = x + layout.block_width - layout.pad
    words = {"free": "free, cached" if kept else "free", "null": "null", "lost": "lost", "held": ""}[
        contents.kind
    ]
    if wrong:  # astride the corner, so that the holders keep their room
        _badge(canvas, x + layout.block_width + 4, y - 6, "!", FOCUS, 15)
    if layout.labelled:
        if layout.named:
            left = canvas.text(x + 9, y + 15.5, f"block {block}", 10.5, fill=MUTED, layer=_LABEL)
        else:
            canvas.digits(x + 9, y + 15.5, block, 11, fill=MUTED, anchor="start", layer=_LABEL)
            left = x + 9 + 7 * len(str(block))
        if words and (layout.named or words != "free"):
            canvas.text(right, y + 15.5, words, 10, fill=MUTED, anchor="end", layer=_LABEL)
        _draw_holders(canvas, left + 4, right, y + 4, 15, contents, paints)
        return
    canvas.digits(x + 4, y + 11.5, block, 9, fill=MUTED, anchor="start", layer=_LABEL, weight=400)
    _draw_holders(canvas, x + 8 + 5.4 * len(str(block)), right, y + 3, 11, contents, paints, layout.crowded)


def _draw_holders(canvas, left, right, y, height, contents, paints, plain=False) -> None:
    """The holders' letters on their colours and how many they are, from the right, as far as they fit."""
    if len(contents.holders) > 1:
        right = _badge(canvas, right, y, f"×{len(contents.holders)}", "" if plain else INK, height)
    if len(contents.holders) > _MOST_LETTERS:
        return
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
