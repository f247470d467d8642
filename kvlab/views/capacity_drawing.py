"""Draw the capacity calculator: the card as a bar, the KV cache in requests, and every figure's formula."""

from kvlab.views.capacity_sums import Capacity, Line, sum_up
from kvlab.views.palette import FILLS, ink_on
from kvlab.views.paths import num, rect
from kvlab.views.pool_layout import MARGIN, WIDTH
from kvlab.views.sentences import draw_sentence
from kvlab.views.svg import Canvas
from kvlab.views.text import clip_text, text_width
from kvlab.views.theme import FOCUS, INK, LINE, MUTED, STRONG

_WEIGHTS, _REST, _KV = FILLS[0], FILLS[1], FILLS[2]
_BAR_TOP, _BAR = 34, 34
_ROW_TOP, _ROW = 92, 30
_TABLE_TOP, _LINE = 164, 38
_RIGHT = 456  # where the second column begins
_MOST_CELLS = 160
_USABLE = WIDTH - 2 * MARGIN
HEIGHT = _TABLE_TOP + 6 * _LINE + 8


def draw_capacity(
    capacity: Capacity, *, problem: str | None = None, uid: str | None = None, standalone: bool = False
) -> str:
    """The SVG of an answer. problem: what is wrong with what was typed since."""
    canvas = Canvas(WIDTH, HEIGHT)
    title = sum_up(capacity)
    canvas.text(MARGIN, 20, clip_text(title, _USABLE, 14, 700), 14, weight=700)
    kv_left, kv_right = _draw_bar(canvas, capacity)
    _draw_requests(canvas, capacity, kv_left, kv_right)
    hatch = {"fill": canvas.hatch("#8c959f"), "stroke": STRONG}
    looks = ({"fill": _WEIGHTS}, {"fill": _REST}, {"fill": _KV}, hatch)
    for i, (line, look) in enumerate(zip(capacity.memory, looks, strict=True)):
        y = _TABLE_TOP + 10 + i * _LINE
        canvas.path(rect(MARGIN, y - 10, 12, 12, 3), **look)
        _draw_line(canvas, MARGIN + 20, y, _RIGHT - MARGIN - 44, line)
    for i, line in enumerate(capacity.chain):
        _draw_line(canvas, _RIGHT, _TABLE_TOP + 10 + i * _LINE, WIDTH - MARGIN - _RIGHT, line)
    if problem:
        draw_sentence(canvas, problem, FOCUS, 700)
    return canvas.svg(title + ".", step=0, uid=uid, standalone=standalone)


def _draw_bar(canvas: Canvas, capacity: Capacity) -> tuple[float, float]:
    """The card's memory, part by part; returns where the KV cache begins and ends."""
    account = capacity.account
    parts = (
        ("weights", account.weights, _WEIGHTS),
        ("the rest", account.rest, _REST),
        ("KV cache", account.kv, _KV),
        ("left alone", account.outside, None),
    )
    x, ends = float(MARGIN), {}
    for name, size, fill in parts:
        width = _USABLE * size / account.total
        ends[name] = x, x + width
        style = {"fill": fill} if fill else {"fill": canvas.hatch("#8c959f"), "stroke": STRONG}
        if width > 0:
            canvas.path(rect(x, _BAR_TOP, max(width - 1, 0.5), _BAR), **style)
        words = f"{name} {size / account.total:.0%}"
        if width > text_width(words, 11.5, 600) + 8:
            # A plate keeps the words readable on hatching.
            ink = ink_on(fill) if fill else INK
            look = {"fill": ink, "weight": 600, "anchor": "middle"}
            canvas.text(x + width / 2, _BAR_TOP + 21, words, 11.5, plate=not fill, **look)
        x += width
    return ends["KV cache"]


def _draw_requests(canvas: Canvas, capacity: Capacity, left: float, right: float) -> None:
    """The KV cache once more, as wide as the figure, cut into requests of the longest length."""
    top = _BAR_TOP + _BAR
    for x, end in ((left, MARGIN), (right - 1, MARGIN + _USABLE)):
        canvas.path(f"M{num(x)} {num(top)}L{num(end)} {_ROW_TOP}", fill="none", stroke=STRONG)
    whole = int(capacity.requests)
    width = _USABLE / capacity.requests if whole else _USABLE
    if whole > _MOST_CELLS:
        canvas.path(rect(MARGIN, _ROW_TOP, _USABLE, _ROW, 4), fill=_KV)
        words = f"{whole:,} requests: too many to draw apart"
        canvas.text(WIDTH / 2, _ROW_TOP + 19, words, 11.5, fill=ink_on(_KV), weight=600, anchor="middle")
    else:
        gap = 2 if width > 8 else 1
        for i in range(whole):
            canvas.path(rect(MARGIN + i * width, _ROW_TOP, width - gap, _ROW, min(4, width / 4)), fill=_KV)
            if width > 26:
                x = MARGIN + i * width + (width - gap) / 2
                canvas.digits(x, _ROW_TOP + 19, i + 1, 11, fill=ink_on(_KV))
        used = whole * width
        if _USABLE - used > 1:
            hatch = {"fill": canvas.hatch(_KV), "stroke": _KV}
            canvas.path(rect(MARGIN + used, _ROW_TOP, _USABLE - used, _ROW, 4), **hatch)
    canvas.text(MARGIN, _ROW_TOP + _ROW + 16, _caption(capacity, whole), 10.5, fill=MUTED)


def _caption(capacity: Capacity, whole: int) -> str:
    over = capacity.num_blocks - whole * capacity.blocks_per_request
    if not whole:
        return (
            f"The whole KV cache: {capacity.num_blocks:,} blocks, but one request of "
            f"{capacity.max_len:,} tokens needs {capacity.blocks_per_request:,}. It can never run."
        )
    spare = f"{over:,} block{'s' * (over != 1)} left for shorter ones" if over else "nothing left over"
    return f"The KV cache: {whole:,} request{'s' * (whole != 1)} of {capacity.max_len:,} tokens, {spare}."


def _draw_line(canvas: Canvas, x: float, y: float, width: float, line: Line) -> None:
    """A figure and what it is, its formula below."""
    right = canvas.text(x, y, line.value, 13, weight=700)
    canvas.text(right + 8, y, line.what, 12, fill=INK)
    formula = f"= {line.formula}" if line.formula[0] in "0123456789(⌈" else line.formula
    canvas.text(x, y + 15, clip_text(formula, width, 10.5), 10.5, fill=MUTED)
    canvas.path(f"M{num(x)} {num(y + 22)}h{num(width)}", fill="none", stroke=LINE)
