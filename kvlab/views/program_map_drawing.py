"""Draw which program of a decode kernel reads which slots of which blocks."""

from __future__ import annotations

from kvlab.views.palette import Paint, paints
from kvlab.views.paths import rect
from kvlab.views.pool_layout import MARGIN
from kvlab.views.program_map_steps import Launch, Program, tell_program
from kvlab.views.sentences import draw_sentence
from kvlab.views.svg import Canvas
from kvlab.views.theme import CARD, EDGE, FOCUS, INK, LINE, MUTED, STRONG

_WIDTH = 760
_CELL, _CELL_HEIGHT = 46, 24  # a program
_SLOT, _PITCH = 15, 17
_HEAD = 22  # room for a block's name
_FAINT = ".22"


def draw_program_map(
    launch: Launch, num_blocks: int, step: int, *, uid: str | None = None, standalone: bool = False
) -> str:
    """The SVG of a step: 0 shows all programs, step i the i-th program and what it reads."""
    canvas = Canvas(_WIDTH)
    colours = paints(launch.tables)
    bottom = _draw_grid(canvas, launch, colours, step)
    canvas.height = _draw_blocks(canvas, launch, num_blocks, colours, step, bottom + 26) + 8
    if standalone:
        draw_sentence(canvas, tell_program(launch, step), INK, 600)
    return canvas.svg(tell_program(launch, step), step=step, uid=uid, standalone=standalone)


def _draw_grid(canvas: Canvas, launch: Launch, colours: dict, step: int) -> float:
    """The programs: a row a sequence, a column for each KV head and split. Returns the bottom."""
    canvas.text(MARGIN, 16, "programs", 11, fill=MUTED)
    left, top = MARGIN + 84, 44
    for head in range(launch.num_kv_heads):
        x = left + head * (launch.num_splits * (_CELL + 4) + 14)
        canvas.text(x, 16, f"KV head {head}", 11, fill=MUTED)
        for split in range(launch.num_splits):
            middle = x + split * (_CELL + 4) + _CELL / 2
            canvas.text(middle, 34, f"split {split}", 9.5, fill=MUTED, anchor="middle")
    for number, program in enumerate(launch.programs, 1):
        row = list(launch.tables).index(program.request)
        across = program.kv_head * launch.num_splits + program.split
        x, y = left + across * (_CELL + 4) + program.kv_head * 14, top + row * (_CELL_HEIGHT + 6)
        if program.kv_head == program.split == 0:
            canvas.text(MARGIN, y + 16, f"sequence {colours[program.request].label}", 11)
        _draw_cell(canvas, x, y, program, colours[program.request], step in (0, number))
        if step == number:
            box = rect(x - 3, y - 3, _CELL + 6, _CELL_HEIGHT + 6, 7)
            canvas.path(box, 3, fill="none", stroke=FOCUS, stroke_width=2.5)
    return top + len(launch.tables) * (_CELL_HEIGHT + 6)


def _draw_cell(canvas: Canvas, x: float, y: float, program: Program, paint: Paint, full: bool) -> None:
    box = rect(x + 0.5, y + 0.5, _CELL - 1, _CELL_HEIGHT - 1, 5)
    if program.begin >= program.end:
        canvas.path(box, 1, fill="none", stroke=STRONG, stroke_dasharray="4 3")
        canvas.text(x + _CELL / 2, y + 16, "none", 10, fill=MUTED, anchor="middle")
        return
    opacity = {} if full else {"fill_opacity": _FAINT}
    canvas.path(box, 1, fill=paint.fill, **opacity, stroke=EDGE)
    text = f"{program.begin}-{program.end - 1}"
    canvas.digits(x + _CELL / 2, y + 16, text, 10.5, fill=paint.ink if full else INK)


def _draw_blocks(
    canvas: Canvas, launch: Launch, num_blocks: int, colours: dict, step: int, top: float
) -> float:
    """The pool: in every block a row of slots for each KV head. Returns the bottom."""
    canvas.text(MARGIN, top, "physical blocks, a row of slots for each KV head", 11, fill=MUTED)
    width = launch.block_size * _PITCH + 14
    height = _HEAD + launch.num_kv_heads * (_PITCH + 2) + 6
    columns = max(1, int((_WIDTH - 2 * MARGIN + 10) // (width + 10)))
    owner = {block: (request, i) for request, table in launch.tables.items() for i, block in enumerate(table)}
    current = launch.programs[step - 1] if step else None
    for block in range(num_blocks):
        x = MARGIN + block % columns * (width + 10)
        y = top + 12 + block // columns * (height + 10)
        reads = current is not None and block in launch.blocks_of(current)
        line = {"stroke": FOCUS, "stroke_width": 2.5} if reads else {"stroke": STRONG, "stroke_width": 1.2}
        canvas.path(rect(x, y, width, height, 8), 0, fill=CARD, **line)
        canvas.text(x + 8, y + 15, f"block {block}", 10.5, fill=MUTED)
        if block in owner:
            label = colours[owner[block][0]].label
            canvas.digits(x + width - 8, y + 15, label, 10.5, fill=INK, anchor="end")
        for head in range(launch.num_kv_heads):
            _draw_row(canvas, launch, owner.get(block), colours, current, head, x + 7, y + _HEAD + head * 19)
    return top + 12 + -(-num_blocks // columns) * (height + 10)


def _draw_row(canvas, launch, owned, colours, current, head: int, x: float, y: float) -> None:
    for offset in range(launch.block_size):
        slot = rect(x + offset * _PITCH + 0.5, y + 0.5, _SLOT - 1, _SLOT - 1, 3)
        position = owned[1] * launch.block_size + offset if owned else 0
        if owned is None or position >= launch.lengths[owned[0]]:
            canvas.path(slot, 1, fill="none", stroke=LINE)
            continue
        paint = colours[owned[0]]
        read = current is None or (
            current.request == owned[0]
            and current.kv_head == head
            and current.begin <= position < current.end
        )
        faint = {} if read else {"fill_opacity": _FAINT}
        canvas.path(slot, 1, fill=paint.fill, **faint, stroke=EDGE)
        size = 8.5 if position < 100 else 7
        ink = paint.ink if read else MUTED
        canvas.digits(x + offset * _PITCH + _SLOT / 2, y + 10.5, position, size, fill=ink)
