"""Block sizes side by side: empty slots on the left, table entries on the right, the choice ringed."""

from collections.abc import Sequence
from typing import NamedTuple

from kvlab.units import format_bytes
from kvlab.views.palette import FILLS
from kvlab.views.paths import rect
from kvlab.views.pool_layout import MARGIN, WIDTH
from kvlab.views.sentences import draw_sentence
from kvlab.views.svg import Canvas
from kvlab.views.theme import EDGE, FOCUS, INK, MUTED
from kvlab.waste import blocks_for, table_bytes

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_WASTE, _TABLE = FILLS[1], FILLS[0]
_TOP, _ROW, _BAR = 58, 28, 16
_LEFT, _LEFT_WIDTH, _RIGHT, _RIGHT_WIDTH = 96, 260, 500, 240
_RIGHT_END = 940


class SizeRow(NamedTuple):
    """One block size. waste: the empty share of all slots held. entries, bytes: of all block tables."""

    block_size: int
    waste: float
    entries: int
    bytes: int


def size_rows(lengths: Sequence[int], sizes: Sequence[int] = SIZES) -> list[SizeRow]:
    """What each block size costs requests of these lengths: 1 - tokens / sum of ceil(length / B) * B."""
    tokens, rows = sum(lengths), []
    for size in sizes:
        entries = sum(blocks_for(length, size) for length in lengths)
        num_bytes = sum(table_bytes(length, size) for length in lengths)
        rows.append(SizeRow(size, 1 - tokens / (entries * size), entries, num_bytes))
    return rows


def choice(rows: Sequence[SizeRow], most_waste: float) -> SizeRow | None:
    """The largest block size whose waste is acceptable."""
    return max((row for row in rows if row.waste <= most_waste), default=None, key=lambda row: row.block_size)


def tell_choice(rows: Sequence[SizeRow], most_waste: float, num_requests: int) -> str:
    """The choice in one line, with the next size beside it."""
    chosen = choice(rows, most_waste)
    if chosen is None:
        return f"No block size wastes at most {most_waste:.1%}."
    larger = [row for row in rows if row.block_size > chosen.block_size]
    requests = "the one request" if num_requests == 1 else f"the {num_requests:,} requests"
    said = f"Blocks of {chosen.block_size}: {chosen.waste:.1%} of what {requests} hold is empty"
    if not larger:
        return f"{said}."
    return f"{said}; blocks of {larger[0].block_size} would leave {larger[0].waste:.1%} empty."


def draw_tradeoff(
    rows: Sequence[SizeRow],
    most_waste: float,
    num_requests: int,
    *,
    problem: str | None = None,
    uid: str | None = None,
    standalone: bool = False,
) -> str:
    """The SVG. problem: what is wrong with what was typed since."""
    canvas = Canvas(WIDTH, _TOP + len(rows) * _ROW + 8)
    title = tell_choice(rows, most_waste, num_requests)
    canvas.text(MARGIN, 20, title, 13, weight=700)
    canvas.text(MARGIN, 46, "block size", 10.5, fill=MUTED)
    canvas.text(_LEFT, 46, "empty slots in last blocks, of all slots held", 10.5, fill=MUTED)
    canvas.text(_RIGHT, 46, "block table entries, and pieces to fetch", 10.5, fill=MUTED)
    chosen = choice(rows, most_waste)
    worst = max(max(row.waste for row in rows), 1e-9)
    longest = max(row.entries for row in rows)
    for i, row in enumerate(rows):
        y = _TOP + i * _ROW
        if row is chosen:
            box = rect(MARGIN - 4, y - 4, _RIGHT_END - MARGIN + 8, _ROW - 4, 6)
            canvas.path(box, 2, fill="none", stroke=FOCUS, stroke_width=2)
        canvas.digits(MARGIN + 40, y + 12.5, row.block_size, 12, anchor="end")
        width = max(1, _LEFT_WIDTH * row.waste / worst) if row.waste else 0
        if width:
            hatch = {"fill": canvas.hatch(_WASTE), "stroke": _WASTE}
            canvas.path(rect(_LEFT, y, width, _BAR, min(3, width / 2)), 1, **hatch)
        shown = "under 0.1%" if 0 < row.waste < 0.0005 else f"{row.waste:.1%}"
        canvas.text(_LEFT + width + 8, y + 12.5, shown, 11, fill=INK)
        width = max(1, _RIGHT_WIDTH * row.entries / longest)
        canvas.path(rect(_RIGHT, y, width, _BAR, min(3, width / 2)), 1, fill=_TABLE, stroke=EDGE)
        words = f"{row.entries:,} × 4 B = {format_bytes(row.bytes)}"
        canvas.text(_RIGHT + width + 8, y + 12.5, words, 11, fill=INK)
    if problem:
        draw_sentence(canvas, problem, FOCUS, 700)
    return canvas.svg(title, step=0, uid=uid, standalone=standalone)
