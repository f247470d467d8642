"""Draw memories as strips of slots, one above the other: who holds what, and where nothing fits."""

from __future__ import annotations

from collections.abc import Sequence

from kvlab.views.fragmentation_frames import Strip
from kvlab.views.palette import paints
from kvlab.views.paths import rect
from kvlab.views.svg import Canvas
from kvlab.views.theme import EDGE, FOCUS, INK, LINE, MUTED, STRONG

SLOT, GAP, ROW = 24, 2, 84
LEFT, TOP = 12, 34


def draw_strips(
    strips: Sequence[Strip],
    people: Sequence[str],
    title: str,
    *,
    step: int | None = None,
    uid: str | None = None,
    standalone: bool = False,
) -> str:
    """The SVG of several strips. people: all requests of the script, so that colours stay the same."""
    longest = max(len(strip.slots) for strip in strips)
    canvas = Canvas(max(620, 2 * LEFT + longest * (SLOT + GAP)), TOP + ROW * len(strips) - 20)
    colours = paints(people)
    for row, strip in enumerate(strips):
        y = TOP + ROW * row
        right = canvas.text(LEFT, y - 12, strip.name, 13, weight=600)
        pieces = "" if strip.block_size else f", largest hole {strip.largest}"
        canvas.text(right + 14, y - 12, f"{strip.free} slots free{pieces}", 12, fill=MUTED)
        for place, (who, filled) in enumerate(strip.slots):
            _draw_slot(canvas, LEFT + place * (SLOT + GAP), y, colours.get(who), filled)
        if strip.block_size:
            _draw_blocks(canvas, strip, y)
        if strip.problem:
            width = len(strip.slots) * (SLOT + GAP) + 6
            canvas.path(
                rect(LEFT - 4, y - 4, width, SLOT + 8, 6), 4, fill="none", stroke=FOCUS, stroke_width=2
            )
            canvas.text(LEFT, y + SLOT + 19, f"does not fit: {strip.problem}", 12, weight=600)
    return canvas.svg(title, step=step, uid=uid, standalone=standalone)


def _draw_slot(canvas: Canvas, x: float, y: float, paint, filled: bool) -> None:
    box = rect(x, y, SLOT, SLOT, 4)
    if paint is None:
        canvas.path(box, 1, fill="none", stroke=LINE)
    elif filled:
        canvas.path(box, 1, fill=paint.fill, stroke=EDGE)
        canvas.digits(x + SLOT / 2, y + 16, paint.label, 11, fill=paint.ink)
    else:
        canvas.path(box, 1, fill=canvas.hatch(paint.fill), stroke=paint.fill)
        canvas.digits(x + SLOT / 2, y + 16, paint.label, 11, fill=INK)


def _draw_blocks(canvas: Canvas, strip: Strip, y: float) -> None:
    for block in range(len(strip.slots) // strip.block_size):
        x = LEFT + block * strip.block_size * (SLOT + GAP)
        width = strip.block_size * (SLOT + GAP) - GAP
        canvas.path(rect(x - 1.5, y - 3, width + 3, SLOT + 6, 5), 2, fill="none", stroke=STRONG)
