"""Draw the online softmax: attention walks one block after another and keeps a running answer."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from kvlab.views.palette import FILLS
from kvlab.views.paths import num, rect
from kvlab.views.pool_layout import MARGIN
from kvlab.views.sentences import draw_sentence
from kvlab.views.softmax_steps import number, tell_softmax, update
from kvlab.views.svg import Canvas
from kvlab.views.theme import FOCUS, INK, LINE, MUTED, STRONG

_WIDTH = 760
_CHART = (34, 150)  # top and bottom of the scores
_SUMS = 208
_OUTPUT = (318, 398)
_MOST_BARS = 240
_BLUE = FILLS[0]


def draw_softmax(trace: Sequence[Any], step: int, *, uid: str | None = None, standalone: bool = False) -> str:
    """The SVG after `step` blocks; step 0 is before the first."""
    canvas = Canvas(_WIDTH, _OUTPUT[1] + 14)
    if trace:
        _draw_scores(canvas, trace, step)
        _draw_sums(canvas, trace, step)
        _draw_output(canvas, trace, step)
    else:
        canvas.height = 8
    if standalone or not trace:
        draw_sentence(canvas, tell_softmax(trace, step), INK, 600)
    return canvas.svg(tell_softmax(trace, step), step=step, uid=uid, standalone=standalone)


def _scale(values: Sequence[float], top: float, bottom: float):
    """A function from a value to its y, with zero and all finite values inside top..bottom."""
    finite = [value for value in values if isfinite(value)]
    low, high = min([0.0, *finite]), max([0.0, *finite])
    span = (high - low) or 1.0
    return lambda value: bottom - (value - low) / span * (bottom - top)


def _bar(x: float, width: float, zero: float, y: float) -> str:
    return rect(x, min(zero, y), width, max(abs(y - zero), 1))


def _visible(trace: Sequence[Any], step: int) -> tuple[int, int]:
    """The steps whose scores are drawn: all, or as many as fit, the current one among them."""
    first = last = max(step - 1, 0)
    count = len(trace[first].scores)
    while first > 0 or last < len(trace) - 1:
        grow_left = first > 0 and (last == len(trace) - 1 or step - 1 - first <= last - step + 1)
        following = first - 1 if grow_left else last + 1
        count += len(trace[following].scores)
        if count > _MOST_BARS:
            break
        first, last = min(first, following), max(last, following)
    return first, last


def _draw_scores(canvas: Canvas, trace: Sequence[Any], step: int) -> None:
    top, bottom = _CHART
    first, last = _visible(trace, step)
    shown = trace[first : last + 1]
    y_of = _scale([score for entry in trace for score in entry.scores], top, bottom)
    gap = 12 if len(shown) <= 12 else 4
    bars = sum(len(entry.scores) for entry in shown)
    pitch = min(28, (_WIDTH - 2 * MARGIN - 150 - gap * len(shown)) / bars)
    canvas.text(MARGIN, 18, "scores, scale × q · k, block by block in the table's order", 11, fill=MUTED)
    x = MARGIN + 6.0
    for i, entry in enumerate(shown, first + 1):
        end = x + len(entry.scores) * pitch
        _draw_block_scores(canvas, entry, x, pitch, y_of, seen=i <= step)
        if pitch * len(entry.scores) > 44:
            canvas.text((x + end) / 2, bottom + 31, f"block {entry.block}", 10.5, fill=MUTED, anchor="middle")
        else:
            canvas.digits((x + end) / 2, bottom + 31, entry.block, 9, fill=MUTED, weight=400)
        if i == step:
            box = rect(x - 4, top - 6, end - x + 6, bottom - top + 42, 6)
            canvas.path(box, 3, fill="none", stroke=FOCUS, stroke_width=2)
        x = end + gap
    canvas.path(f"M{MARGIN} {num(y_of(0))}H{num(x)}", 1, stroke=STRONG, fill="none")
    if step:
        high = trace[step - 1].running_max
        y = y_of(high)
        canvas.path(
            f"M{MARGIN} {num(y)}H{num(x + 4)}", 4, stroke=FOCUS, stroke_width=1.6, stroke_dasharray="5 3"
        )
        canvas.text(x + 8, y + 4, f"max {number(high)}", 12, fill=FOCUS, weight=700)


def _draw_block_scores(canvas: Canvas, entry: Any, x: float, pitch: float, y_of, *, seen: bool) -> None:
    style = {"fill": _BLUE} if seen else {"fill": "none", "stroke": LINE}
    width = pitch - 4 if pitch > 8 else max(pitch - 1, 0.8)
    for i, (position, score) in enumerate(zip(entry.positions, entry.scores, strict=True)):
        if isfinite(score):
            canvas.path(_bar(x + i * pitch, width, y_of(0), y_of(score)), 2, **style)
        if pitch >= 15:
            canvas.digits(x + i * pitch + width / 2, _CHART[1] + 15, position, 10, fill=MUTED, weight=400)


def _draw_sums(canvas: Canvas, trace: Sequence[Any], step: int) -> None:
    """The running sum as a bar: what was carried over, scaled, and what the block added."""
    canvas.text(MARGIN, _SUMS + 12, "running sum of exp(score − max)", 11, fill=MUTED)
    largest = max(entry.running_sum for entry in trace) or 1.0
    room = 330
    canvas.path(rect(MARGIN + 0.5, _SUMS + 22.5, room, 20, 4), 1, fill="none", stroke=LINE)
    if not step:
        canvas.text(MARGIN + room + 16, _SUMS + 37, "0", 13, weight=700)
        return
    change = update(trace, step)
    carried = max(0.0, change.new_sum - change.added)
    if carried > 0:
        box = rect(MARGIN + 1, _SUMS + 23, room * carried / largest, 19)
        canvas.path(box, 2, fill=_BLUE, fill_opacity=".35")
    box = rect(MARGIN + 1 + room * carried / largest, _SUMS + 23, room * change.added / largest, 19)
    canvas.path(box, 2, fill=_BLUE)
    x = MARGIN + room + 16
    if change.old_sum:
        parts = f"{number(change.old_sum)} × {number(change.factor)} + {number(change.added)} ="
        x = canvas.text(x, _SUMS + 37, parts, 13) + 5
    canvas.text(x, _SUMS + 37, number(change.new_sum), 13, weight=700)
    factor = f"exp({number(change.old_max)} − {number(change.new_max).replace('−', '-')})"
    if change.old_max == float("-inf"):
        words = "nothing to carry over yet"
    else:
        words = f"faint: carried over, scaled by {factor} = {number(change.factor)}; full: this block's part"
    canvas.text(MARGIN, _SUMS + 60, words, 11, fill=MUTED)


def _draw_output(canvas: Canvas, trace: Sequence[Any], step: int) -> None:
    """The output so far as filled bars, over the outline of what it will be at the end."""
    top, bottom = _OUTPUT
    size = min(len(trace[-1].partial_output), _MOST_BARS)
    note = "" if size == len(trace[-1].partial_output) else f", first {size} of its numbers"
    words = f"output so far, one bar a number{note}; outline: after the last block"
    canvas.text(MARGIN, top - 14, words, 11, fill=MUTED)
    y_of = _scale([value for entry in trace for value in entry.partial_output[:size]], top, bottom)
    pitch = min(28, (_WIDTH - 2 * MARGIN) / max(size, 1))
    width = pitch - 4 if pitch > 8 else max(pitch - 1, 0.8)
    for i in range(size):
        x = MARGIN + 2 + i * pitch
        value = trace[step - 1].partial_output[i] if step else 0.0
        if step and isfinite(value):
            canvas.path(_bar(x + 2, width - 4 if width > 8 else width, y_of(0), y_of(value)), 2, fill=_BLUE)
        final = trace[-1].partial_output[i]
        if isfinite(final):
            canvas.path(_bar(x, width, y_of(0), y_of(final)), 3, fill="none", stroke=STRONG)
    canvas.path(f"M{MARGIN} {num(y_of(0))}H{num(MARGIN + 4 + size * pitch)}", 1, stroke=STRONG, fill="none")
