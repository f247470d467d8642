"""Draw layer groups: a table a group for each request, and the one pool that all of them take from."""

from collections.abc import Hashable, Sequence
from typing import Any

from kvlab.views.group_steps import GroupFrame, group_names
from kvlab.views.palette import Paint, paints
from kvlab.views.paths import rect
from kvlab.views.pool_layout import MARGIN, WIDTH
from kvlab.views.sentences import draw_sentence
from kvlab.views.svg import Canvas
from kvlab.views.tables_drawing import draw_name
from kvlab.views.text import clip_text, text_width
from kvlab.views.theme import CARD, EDGE, FOCUS, INK, LINE, MUTED, STRONG

MOST_REQUESTS = 3

_TOP, _ROW, _BAND = 24, 34, 10
_NAMES, _CELLS = 48, 196  # x of the groups' names and of their blocks
_CELL_HEIGHT, _GAP = 30, 6
_POOL_CELL, _POOL_ROW = 34, 38
_MOST_SLOTS = 8  # tokens a block, up to which each is drawn by itself
_MOST_IN_ALL = 480  # tokens in all blocks, up to which the same


class GroupScene:
    """What stays the same from frame to frame: rows, widths and colours."""

    def __init__(self, frames: Sequence[GroupFrame], groups: Sequence[Any], num_blocks: int):
        self.groups, self.names = tuple(groups), group_names(groups)
        everyone = list(dict.fromkeys(rid for frame in frames for rid in frame.tables))
        self.paints = paints(everyone)
        self.ids = everyone[:MOST_REQUESTS]
        self.more = len(everyone) - len(self.ids)
        self.num_blocks = num_blocks
        size = max(group.block_size for group in groups)
        self.cell = min(72, max(42, 8 * min(size, _MOST_SLOTS) + 8))
        self.room = int((WIDTH - MARGIN - _CELLS) // (self.cell + _GAP))
        self.band = len(groups) * _ROW + _BAND
        cells = max(self._num_cells(frame) for frame in frames)
        self.slots = size <= _MOST_SLOTS and cells * size <= _MOST_IN_ALL
        self.pool_top = _TOP + max(1, len(self.ids)) * self.band + (18 if self.more else 0) + 30
        self.per_row = int((WIDTH - 2 * MARGIN + 4) // (_POOL_CELL + 4))
        self.shown = min(num_blocks, 3 * self.per_row)
        self.legend_y = self.pool_top + -(-self.shown // self.per_row) * _POOL_ROW + 16
        self.height = self.legend_y + 8

    def _num_cells(self, frame: GroupFrame) -> int:
        return sum(min(len(table), self.room) for rid in self.ids for table in frame.tables.get(rid, ()))


def draw_groups(
    scene: GroupScene,
    frames: Sequence[GroupFrame],
    step: int,
    *,
    uid: str | None = None,
    standalone: bool = False,
) -> str:
    """The SVG of one frame."""
    frame = frames[step]
    canvas = Canvas(WIDTH, scene.height)
    canvas.text(_NAMES, 14, "group of layers", 10.5, fill=MUTED)
    canvas.text(_CELLS, 14, "its block table, entry 0 first", 10.5, fill=MUTED)
    for place, rid in enumerate(scene.ids):
        y = _TOP + place * scene.band
        live = rid in frame.tables
        draw_name(canvas, MARGIN, y + 4, 28, scene.paints[rid].label, scene.paints[rid], live)
        if live:
            canvas.digits(MARGIN + 14, y + 42, frame.lengths[rid], 11, weight=400)
        for number, name in enumerate(scene.names):
            _draw_group(canvas, scene, frame, rid, number, name, y + number * _ROW)
    if scene.more:
        note = f"{scene.more} more request{'s are' if scene.more > 1 else ' is'} not drawn above."
        canvas.text(MARGIN, scene.pool_top - 36, note, 10.5, fill=MUTED)
    _draw_pool(canvas, scene, frame)
    _draw_legend(canvas, scene)
    if frame.error:
        draw_sentence(canvas, f"Wrong: {frame.error}", FOCUS, 700)
    line = tell_groups(frames, step)
    if standalone:
        draw_sentence(canvas, line, INK, 600)
    return canvas.svg(line, step=step, uid=uid, standalone=standalone)


def tell_groups(frames: Sequence[GroupFrame], step: int) -> str:
    """The step in one line."""
    return f"step {step} of {len(frames) - 1}  {frames[step].telling}"


def oldest_seen(length: int, group: Any) -> int:
    """The first token that the newest one attends to in this group."""
    if group.kind == "sliding":
        return max(0, length - group.window)
    return max(0, length - 1) // group.window * group.window if group.kind == "chunked" else 0


def _draw_group(
    canvas: Canvas, scene: GroupScene, frame: GroupFrame, rid: Hashable, number: int, name: str, y: float
) -> None:
    group, paint = scene.groups[number], scene.paints[rid]
    extent = {"sliding": f", window {group.window}", "chunked": f", chunk {group.window}"}.get(group.kind, "")
    canvas.digits(_NAMES, y + 20, _letter(name), 11, anchor="start", mono=True)
    words = clip_text(name + extent, _CELLS - _NAMES - 26, 11)
    canvas.text(_NAMES + 20, y + 20, words, 11)
    if rid not in frame.tables:
        return
    table = frame.tables[rid][number]
    first = max(0, len(table) - scene.room)
    if first:  # keep the end of the table, where things happen
        canvas.text(_CELLS, y + 20, f"… {first + 1} before", 10.5, fill=MUTED)
        first += 1
    start = max(0, len(table) - scene.room)
    for entry in range(first, len(table)):
        x = _CELLS + (entry - start) * (scene.cell + _GAP)
        taken = table[entry] in frame.taken.get((rid, number), ())
        _draw_cell(canvas, scene, x, y, table[entry], entry, frame.lengths[rid], group, paint, taken)


def _draw_cell(canvas, scene, x, y, block, entry, length, group, paint: Paint, taken: bool) -> None:
    """One table entry: a block with its tokens, or the hole that it left."""
    width = scene.cell
    if not block:
        outline = {"stroke": LINE, "stroke_dasharray": "3 2"}
        canvas.path(rect(x, y, width, _CELL_HEIGHT, 6), fill="none", **outline)
        canvas.digits(x + width / 2, y + 19, "–", 11, fill=MUTED, weight=400)
        return
    canvas.path(rect(x, y, width, _CELL_HEIGHT, 6), fill=CARD, stroke=STRONG, stroke_width=1.2)
    if taken:
        outer = rect(x - 2.5, y - 2.5, width + 5, _CELL_HEIGHT + 5, 8)
        canvas.path(outer, 2, fill="none", stroke=FOCUS, stroke_width=2)
    canvas.digits(x + 5, y + 12, block, 10, fill=INK, anchor="start")
    if group.kind == "linear":
        canvas.path(rect(x + 4, y + 16, width - 8, 10, 3), 1, fill=paint.fill, stroke=EDGE)
        return
    size = group.block_size
    filled = max(0, min(size, length - entry * size))
    behind = max(0, min(filled, oldest_seen(length, group) - entry * size))
    faint = {"fill": paint.fill, "fill_opacity": ".3"}
    for start, end, style in (
        (0, behind, faint),
        (behind, filled, {"fill": paint.fill}),
        (filled, size, {"fill": canvas.hatch(paint.fill)}),
    ):
        _draw_slots(canvas, x + 4, y + 16, width - 8, size, start, end, style, scene.slots)


def _draw_slots(canvas, x, y, width, size, start, end, style, apart: bool) -> None:
    if end <= start:
        return
    pitch = width / size
    if not apart:
        canvas.path(rect(x + start * pitch, y, (end - start) * pitch, 10), 1, **style)
        return
    for offset in range(start, end):
        canvas.path(rect(x + offset * pitch, y, pitch - 1, 10), 1, **style)


def _draw_pool(canvas: Canvas, scene: GroupScene, frame: GroupFrame) -> None:
    """Every block of the pool with its holder's colour and its group's letter."""
    held = {
        block: (rid, number)
        for rid, tables in frame.tables.items()
        for number, table in enumerate(tables)
        for block in table
        if block
    }
    given = {block for blocks in frame.given.values() for block in blocks}
    usable = scene.num_blocks - 1
    words = f"One pool of {usable} blocks: {len(held)} held, {len(frame.free)} free"
    canvas.text(MARGIN, scene.pool_top - 14, words, 12, weight=600)
    right = MARGIN + text_width(words, 12, 600) + 14
    queue = ", ".join(map(str, frame.free[:12])) + (" …" if len(frame.free) > 12 else "")
    canvas.text(right, scene.pool_top - 14, f"next to be taken: {queue or 'none'}", 10.5, fill=MUTED)
    if scene.shown < scene.num_blocks:
        note = f"{scene.num_blocks - scene.shown:,} more blocks are not drawn."
        canvas.text(WIDTH - MARGIN, scene.pool_top - 14, note, 10.5, fill=MUTED, anchor="end")
    for block in range(scene.shown):
        row, column = divmod(block, scene.per_row)
        x, y = MARGIN + column * (_POOL_CELL + 4), scene.pool_top + row * _POOL_ROW
        box = rect(x, y, _POOL_CELL, _CELL_HEIGHT + 2, 6)
        who = held.get(block)
        ink = scene.paints[who[0]].ink if who else MUTED
        if who:
            canvas.path(box, fill=scene.paints[who[0]].fill, stroke=EDGE)
            letter = _letter(scene.names[who[1]])
            canvas.digits(x + _POOL_CELL / 2, y + 26, letter, 10, fill=ink, mono=True)
        else:
            canvas.path(box, fill="none", stroke=LINE)
            if not block:
                canvas.digits(x + _POOL_CELL / 2, y + 26, "null", 9, fill=MUTED, weight=400, mono=True)
        canvas.digits(x + _POOL_CELL / 2, y + 13, block, 11, fill=ink, weight=600 if who else 400)
        if block in given:
            outer = rect(x - 2, y - 2, _POOL_CELL + 4, _CELL_HEIGHT + 6, 8)
            canvas.path(outer, 2, fill="none", stroke=FOCUS, stroke_width=1.8, stroke_dasharray="4 3")


def _letter(name: str) -> str:
    """F, S1, L: a group in one or two characters."""
    kind, _, number = name.partition(" ")
    return kind[0].upper() + number


def _draw_legend(canvas: Canvas, scene: GroupScene) -> None:
    x, y = MARGIN, scene.legend_y
    fill = next(iter(scene.paints.values())).fill if scene.paints else STRONG
    entries = (
        ("seen by the newest token", {"fill": fill}),
        ("behind the window, block still held", {"fill": fill, "fill_opacity": ".3"}),
        ("given back: a hole in the table", {"fill": "none", "stroke": LINE, "stroke_dasharray": "3 2"}),
        ("given back in this step", {"fill": "none", "stroke": FOCUS, "stroke_dasharray": "4 3"}),
    )
    for words, style in entries:
        canvas.path(rect(x + 0.5, y - 10.5, 13, 13, 3), **style)
        canvas.text(x + 20, y, words, 10.5, fill=MUTED)
        x += 34 + text_width(words, 10.5)
