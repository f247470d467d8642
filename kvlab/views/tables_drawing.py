"""Draw block tables, one row a request, and the free list in the order in which it will be handed out."""

from collections.abc import Collection, Hashable, Mapping
from math import ceil

from kvlab.state import State
from kvlab.views.contents import is_block
from kvlab.views.palette import Paint
from kvlab.views.paths import rect
from kvlab.views.pool_layout import MARGIN, WIDTH
from kvlab.views.svg import Canvas
from kvlab.views.text import clip_text, text_width
from kvlab.views.theme import CARD, FOCUS, INK, LINE, MUTED, STRONG

CHIP, CHIP_STEP, ROW = 32, 40, 31
MOST_ROWS = 10

_BOX = 28
_HEAD = 18
_LENGTH = 40  # from the name to the right end of the length


class TablesLayout:
    """Places for the rows of a fixed set of requests, the same in every frame of a stepper.

    When there are more requests than `MOST_ROWS`, the rows go to those that are live.
    """

    def __init__(self, paints: Mapping[Hashable, Paint], longest: int, top: float):
        self.ids = ids = list(paints)
        self.count = min(len(ids), MOST_ROWS)
        self.name_width = max((name_width(rid, paints[rid]) for rid in ids), default=_BOX)
        self.start = self.name_width + _LENGTH + 24
        needed = self.start + CHIP_STEP * max(longest, 2) + 12
        self.columns = max(1, min(3, int((WIDTH - 2 * MARGIN) // needed), ceil(self.count / 4)))
        self.column_width = min(needed, WIDTH - 2 * MARGIN)
        self.room = int((self.column_width - self.start - 10) // CHIP_STEP)
        self.rows = ceil(self.count / self.columns)
        self.top = top
        self.more = len(ids) > MOST_ROWS
        self.bottom = top + _HEAD + self.rows * ROW + (18 if self.more else 0)

    @property
    def right(self) -> float:
        """The x where the last column ends."""
        return MARGIN + self.columns * self.column_width

    def rows_for(self, state: State) -> list[Hashable]:
        """The requests that get a row in this state, in order."""
        if not self.more:
            return self.ids
        return [rid for rid in self.ids if rid in state.tables][: self.count]

    def place(self, index: int) -> tuple[float, float]:
        """Upper left corner of a row."""
        column, row = divmod(index, self.rows)
        return MARGIN + column * self.column_width, self.top + _HEAD + row * ROW


def name_width(request_id: Hashable, paint: Paint) -> float:
    """Room for the label's box and, where the label is not the whole name, the name."""
    name = str(request_id)
    return _BOX if name == paint.label else _BOX + 6 + min(130, text_width(name, 11))


def draw_tables(
    canvas: Canvas,
    layout: TablesLayout,
    state: State,
    paints: Mapping[Hashable, Paint],
    lit: Mapping[Hashable, Collection[int]],
    wrong: Collection[int],
) -> None:
    """One row a request: name, length and table. lit: table entries that this step is about."""
    rows = layout.rows_for(state)
    for column in range(layout.columns if rows else 0):
        x, y = layout.place(column * layout.rows)
        canvas.text(x + layout.name_width + _LENGTH, y - 7, "length", 10.5, fill=MUTED, anchor="end")
        canvas.text(x + layout.start, y - 7, "block table", 10.5, fill=MUTED)
    for index, rid in enumerate(rows):
        x, y = layout.place(index)
        live = rid in state.tables
        draw_name(canvas, x, y, layout.name_width, rid, paints[rid], live)
        right = x + layout.name_width + _LENGTH
        canvas.digits(right, y + 15, state.lengths[rid] if live else "–", 12, weight=400, anchor="end")
        if live:
            _draw_row(canvas, layout, x + layout.start, y, state, rid, paints[rid], lit.get(rid, ()), wrong)
    if layout.more:
        left_out = len(state.tables) - len([rid for rid in rows if rid in state.tables])
        if left_out:
            note = f"{left_out} more table{'s are' if left_out > 1 else ' is'} not drawn."
            canvas.text(MARGIN, layout.bottom - 6, note, 10.5, fill=MUTED)


def draw_name(canvas: Canvas, x: float, y: float, width: float, rid, paint: Paint, live: bool) -> None:
    """A request's label in its colour, dashed once it has ended; its name where that is longer."""
    box = rect(x, y, _BOX, 22, 6)
    if live:
        canvas.path(box, fill=paint.fill)
    else:
        canvas.path(box, fill="none", stroke=paint.fill, stroke_dasharray="3 2")
    ink = paint.ink if live else MUTED
    canvas.digits(x + _BOX / 2, y + 15, paint.label, 12, fill=ink, weight=700, mono=True)
    if str(rid) != paint.label:
        canvas.text(x + _BOX + 6, y + 15, clip_text(str(rid), width - _BOX - 4, 11), 11)


def _draw_row(canvas, layout, x, y, state, rid, paint, lit, wrong) -> None:
    table = state.tables[rid]
    room = layout.room if len(table) <= layout.room else max(0, layout.room - 2)
    shown = range(len(table))
    if len(table) > room:  # keep the end of the table, where things happen
        shown = range(len(table) - room, len(table))
        canvas.text(x, y + 15, f"{len(table) - room} more …", 10.5, fill=MUTED)
        x += CHIP_STEP * 2
    for place, logical_block in enumerate(shown):
        block = table[logical_block]
        bad = block in wrong or not is_block(block, state.num_blocks)
        draw_chip(canvas, x + place * CHIP_STEP, y, block, paint.fill, ringed=logical_block in lit, wrong=bad)


def draw_chip(
    canvas: Canvas,
    x: float,
    y: float,
    block: object,
    colour: str,
    *,
    ringed: bool = False,
    wrong: bool = False,
    bold: bool = False,
) -> None:
    """One entry of a table or of the free list."""
    box = rect(x, y, CHIP, 22, 6)
    if wrong:
        canvas.path(box, fill=CARD, stroke=FOCUS, stroke_width=2, stroke_dasharray="4 2")
    else:
        canvas.path(box, fill=CARD, stroke=colour, stroke_width=3 if bold else 1.6)
    if ringed:
        canvas.path(rect(x - 3, y - 3, CHIP + 6, 28, 8), 1, fill="none", stroke=FOCUS, stroke_width=2)
    text = clip_text(str(block), CHIP + 2, 12)
    canvas.digits(x + CHIP / 2, y + 15.3, text, 12 if len(text) < 4 else 9, fill=INK)


def draw_free_list(
    canvas: Canvas, y: float, state: State, freed: Collection[int], wrong: Collection[int], right: float
) -> None:
    """The free list, next block first, up to `right`. freed: entries that came back in this step."""
    canvas.text(MARGIN, y + 15, "free list, next first", 10.5, fill=MUTED)
    x = MARGIN + 128
    if not state.free:
        canvas.text(x, y + 15, "empty", 11, weight=600)
        return
    room = int((right - x) // CHIP_STEP)
    shown = state.free if len(state.free) <= room else state.free[: room - 2]
    for place, block in enumerate(shown):
        colour = STRONG if place == 0 else LINE
        bad = block in wrong or not is_block(block, state.num_blocks)
        draw_chip(canvas, x + place * CHIP_STEP, y, block, colour, ringed=block in freed, wrong=bad)
    if len(shown) < len(state.free):
        more = f"… {len(state.free) - len(shown)} more"
        canvas.text(x + len(shown) * CHIP_STEP + 4, y + 15, more, 10.5, fill=MUTED)
