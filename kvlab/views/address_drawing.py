"""Draw address translation: a token's way from its position through the block table to its slot."""

from dataclasses import dataclass
from typing import NamedTuple

from kvlab.state import State
from kvlab.views.address import Answer, Place, Tensor, locate
from kvlab.views.contents import read_blocks
from kvlab.views.palette import Paint, paints
from kvlab.views.paths import arrow_head, rect, route
from kvlab.views.pool_drawing import draw_pool
from kvlab.views.pool_layout import MARGIN, WIDTH, PoolLayout
from kvlab.views.sentences import draw_sentence
from kvlab.views.slot_drawing import draw_position, ring
from kvlab.views.svg import Canvas
from kvlab.views.tables_drawing import CHIP, draw_chip
from kvlab.views.tensor_drawing import HEIGHT as TENSOR_HEIGHT
from kvlab.views.tensor_drawing import draw_tensor
from kvlab.views.theme import EDGE, FOCUS, INK, MUTED

_TOKENS, _TABLE, _POOL = 44, 96, 124
_PITCH, _SIZE, _GROUP_GAP = 29, 26, 14
_LEFT = 100
_MOST_TOKENS = 26
_LEAST_WIDTH = 660


@dataclass(frozen=True)
class AddressView:
    """All that the figure shows at one position. problem: a sentence on what was typed, else None."""

    table: tuple[int, ...]
    length: int
    tensor: Tensor
    request_id: str
    position: int
    layer: int = 0
    head: int = 0
    answer: Answer | None = None
    problem: str | None = None

    @property
    def place(self) -> Place:
        """The right place of the position."""
        return locate(self.table, self.tensor.block_size, self.position)

    @property
    def entry(self) -> int:
        """The table entry that the arrow goes through: the learner's, where the block is in the table."""
        if self.answer is not None and self.answer.block in self.table:
            return (
                self.place.entry
                if self.answer.block == self.place.block
                else self.table.index(self.answer.block)
            )
        return self.place.entry

    @property
    def state(self) -> State:
        """The request alone in its pool."""
        free = tuple(block for block in range(self.tensor.num_blocks) if block not in self.table)
        return State(
            num_blocks=self.tensor.num_blocks,
            block_size=self.tensor.block_size,
            tables={self.request_id: self.table},
            lengths={self.request_id: self.length},
            free=free,
        )


def tell(view: AddressView) -> str:
    """The translation in one line."""
    t, size, (entry, block, slot) = view.position, view.tensor.block_size, view.place
    line = (
        f"{view.request_id}, position {t}: {t} // {size} = {entry}, table entry {entry} is block {block}; "
        f"{t} % {size} = {slot}, slot {slot}; slot number {block} × {size} + {slot} = {block * size + slot}."
    )
    if view.answer is not None:
        line += f" {view.answer.sentence[:1].upper()}{view.answer.sentence[1:]}"
    return f"{view.problem} Shown: {line}" if view.problem else line


def draw_address(view: AddressView, *, uid: str | None = None, standalone: bool = False) -> str:
    """The SVG of one position."""
    paint = paints([view.request_id])[view.request_id]
    pool = PoolLayout(view.tensor.num_blocks, view.tensor.block_size, _POOL, must_show=view.table)
    window = _window(view)
    row_right = _LEFT + window.width + 40
    width = min(WIDTH, max(_LEAST_WIDTH, pool.right + MARGIN, row_right))
    tensor_top = pool.bottom + (32 if pool.hidden else 14)
    canvas = Canvas(width, tensor_top + TENSOR_HEIGHT)
    target = _target(view, pool)
    _draw_formula(canvas, view)
    _draw_tokens(canvas, view, window, paint)
    start = _draw_table(canvas, view, window, paint)
    draw_pool(canvas, pool, read_blocks(view.state), {view.request_id: paint})
    if target is not None:
        _draw_way(canvas, pool, start, target)
    if view.answer is not None and not view.answer.right:
        ring(canvas, pool, view.place.block, view.place.slot, 1, dashed=True)
    shown = (view.place.block, view.place.slot) if target is None else target
    draw_tensor(canvas, view.tensor, (view.layer, *shown, view.head), paint, tensor_top)
    _draw_sentences(canvas, view)
    return canvas.svg(tell(view), step=view.position, uid=uid, standalone=standalone)


def _target(view: AddressView, pool: PoolLayout) -> tuple[int, int] | None:
    """The slot that the arrow points at: the learner's, where there is one and it exists."""
    if view.answer is None:
        return view.place.block, view.place.slot
    block, slot = view.answer.block, view.answer.slot
    exists = block is not None and pool.shows(block) and 0 <= slot < view.tensor.block_size
    return (block, slot) if exists else None


class _Window(NamedTuple):
    """The tokens that fit in a line: whole groups where possible, around the current position."""

    groups: list[range]
    first_entry: int
    width: float


def _window(view: AddressView) -> _Window:
    size, entry = view.tensor.block_size, view.place.entry
    if size > _MOST_TOKENS:
        first = max(entry * size, view.position - _MOST_TOKENS // 2)
        group = range(first, min(view.length, (entry + 1) * size, first + _MOST_TOKENS))
        return _Window([group], entry, len(group) * _PITCH)
    slot_width = _PITCH * size + _GROUP_GAP
    most = max(1, int((WIDTH - _LEFT - 60) // max(slot_width, CHIP + _GROUP_GAP + 18)))
    used = -(-view.length // size)
    first = max(0, min(entry - most // 2, used - most))
    groups = [
        range(e * size, min(view.length, (e + 1) * size)) for e in range(first, min(used, first + most))
    ]
    return _Window(groups, first, len(groups) * _group_step(size))


def _group_step(size: int) -> float:
    return max(_PITCH * size + _GROUP_GAP, CHIP + _GROUP_GAP + 18)


def _group_x(window: _Window, size: int, place: int) -> float:
    """The x of a group's first token; narrow groups stand over the middle of their table entry."""
    narrow = max(0, CHIP / 2 + 14 - (size * _PITCH - 3) / 2)
    return _LEFT + place * _group_step(size) + narrow


def _draw_formula(canvas: Canvas, view: AddressView) -> None:
    t, size, (entry, block, slot) = view.position, view.tensor.block_size, view.place
    x = canvas.text(MARGIN, 24, f"position {t}", 14, weight=700)
    x = canvas.text(x + 12, 24, f"{t} // {size} = {entry}", 14, weight=700)
    x = canvas.text(x + 6, 24, f"entry {entry} of the table: block {block}", 12, fill=MUTED)
    x = canvas.text(x + 16, 24, f"{t} % {size} = {slot}", 14, weight=700)
    canvas.text(x + 6, 24, f"slot {slot}", 12, fill=MUTED)


def _draw_tokens(canvas: Canvas, view: AddressView, window: _Window, paint: Paint) -> None:
    size = view.tensor.block_size
    canvas.path(rect(MARGIN, _TOKENS + 2, 22, 22, 6), fill=paint.fill)
    canvas.digits(MARGIN + 11, _TOKENS + 17, paint.label, 12, fill=paint.ink, weight=700, mono=True)
    canvas.text(MARGIN + 28, _TOKENS + 17, "tokens", 11, fill=MUTED)
    if window.groups[0].start > 0:
        canvas.text(_LEFT - 5, _TOKENS + 17, "…", 11, fill=MUTED, anchor="end")
    for place, group in enumerate(window.groups):
        x = _group_x(window, size, place)
        for i, position in enumerate(group):
            canvas.path(rect(x + i * _PITCH, _TOKENS, _SIZE, _SIZE, 4), fill=paint.fill, stroke=EDGE)
            draw_position(canvas, x + i * _PITCH, _TOKENS, _SIZE, position, paint.ink)
            if position == view.position:
                box = rect(x + i * _PITCH - 2.5, _TOKENS - 2.5, _SIZE + 5, _SIZE + 5, 6)
                canvas.path(box, 5, fill="none", stroke=FOCUS, stroke_width=2.5)
    if window.groups[-1].stop < view.length:
        end = _group_x(window, size, len(window.groups) - 1) + len(window.groups[-1]) * _PITCH
        canvas.text(end + 4, _TOKENS + 17, "…", 11, fill=MUTED)


def _draw_table(canvas: Canvas, view: AddressView, window: _Window, paint: Paint) -> tuple[float, float]:
    """The table's entries and the arrow from the token to one. Returns where the next arrow starts."""
    size = view.tensor.block_size
    canvas.text(MARGIN + 28, _TABLE + 15, "table", 11, fill=MUTED)
    token = start = _LEFT
    for place, group in enumerate(window.groups):
        entry = window.first_entry + place
        x = _group_x(window, size, place)
        middle = x + (len(group) * _PITCH - 3) / 2
        if view.position in group:
            token = x + (view.position - group.start) * _PITCH + _SIZE / 2
            start = middle if view.entry not in _entries(window) else start
        if entry == view.entry:
            start = middle
        left = middle - CHIP / 2
        canvas.digits(left - 5, _TABLE + 15, f"{entry}:", 10, fill=MUTED, weight=400, anchor="end", mono=True)
        draw_chip(
            canvas,
            left,
            _TABLE,
            view.table[entry],
            paint.fill,
            bold=entry == view.entry,
            ringed=entry == view.entry,
        )
        if entry == view.place.entry != view.entry:
            box = rect(left - 3, _TABLE - 3, CHIP + 6, 28, 8)
            canvas.path(box, 1, fill="none", stroke=INK, stroke_width=2, stroke_dasharray="4 3")
    bend = (_TOKENS + _SIZE + _TABLE) / 2
    points = [(token, _TOKENS + _SIZE + 3), (token, bend), (start, bend), (start, _TABLE - 7)]
    canvas.path(route(points), 5, fill="none", stroke=FOCUS, stroke_width=1.8)
    canvas.path(arrow_head(start, _TABLE - 3, "down", 4), 5, fill=FOCUS)
    return start, _TABLE + 25


def _entries(window: _Window) -> range:
    return range(window.first_entry, window.first_entry + len(window.groups))


def _draw_way(canvas: Canvas, pool: PoolLayout, start: tuple[float, float], target: tuple[int, int]) -> None:
    """The arrow from the table into the pool, through the lanes between blocks, and the ring on its slot."""
    block, slot = target
    x, y = pool.slot_center(block, slot), pool.corner(block)[1]
    lane = pool.top + pool.lane / 2 - 2
    points = [start, (start[0], lane)]
    if pool.row(block):
        gutter, above = pool.corner(block)[0] - pool.column_gap / 2, y - pool.lane / 2 - 2
        points += [(gutter, lane), (gutter, above), (x, above)]
    else:
        points += [(x, lane)]
    canvas.path(route([*points, (x, y - 4)]), 5, fill="none", stroke=FOCUS, stroke_width=1.8)
    canvas.path(arrow_head(x, y, "down", 4), 5, fill=FOCUS)
    ring(canvas, pool, block, slot, 1)


def _draw_sentences(canvas: Canvas, view: AddressView) -> None:
    """What was wrong with the typed position, and what the learner's function did."""
    sentences = [(view.problem, FOCUS)] if view.problem else []
    if view.answer is not None:
        words = f"{view.answer.sentence[:1].upper()}{view.answer.sentence[1:]}"
        sentences.append((words, INK if view.answer.right else FOCUS))
    for sentence, fill in sentences:
        draw_sentence(canvas, sentence, fill, 700)
