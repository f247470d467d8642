"""Draw one frame of sharing: the tree of forks, a table a row, each block once, and what this step copied."""

from collections.abc import Hashable, Sequence

from kvlab.block_table import BlockCopy
from kvlab.recording import Frame
from kvlab.state import State
from kvlab.views.beam_drawing import draw_tree, tree_height
from kvlab.views.beam_steps import BeamTree
from kvlab.views.contents import is_block, read_blocks
from kvlab.views.legend import legend
from kvlab.views.paths import arrow_head, rect, route
from kvlab.views.pointers import draw_pointers
from kvlab.views.pool_drawing import draw_pool
from kvlab.views.pool_layout import MARGIN, WIDTH
from kvlab.views.sentences import draw_sentence
from kvlab.views.sharing_layout import BESIDE, CHIP_HEIGHT, MOST_ROWS, PlacedBlocks, SharingLayout
from kvlab.views.svg import Canvas
from kvlab.views.tables_drawing import CHIP_STEP, draw_free_list, draw_name, name_width
from kvlab.views.text import text_width
from kvlab.views.theme import FOCUS, INK, MUTED, STRONG
from kvlab.views.written import draw_written

_TOP = 6
_LEAST_WIDTH = 620
_ROWS_BELOW_TREE = 4
_NEAR = 60  # blocks of neighbouring rows are closer than this
_LABEL = {"fill": FOCUS, "weight": 700, "layer": 6}


class SharingScene:
    """What stays the same from frame to frame, and which steps wrote in place after sharing."""

    def __init__(self, frames: Sequence[Frame], tree: BeamTree | None = None):
        first = frames[0].state
        self.tree = tree
        top = _TOP + (tree_height(tree) if tree else 0)
        self.layout = SharingLayout(frames, top, _ROWS_BELOW_TREE if tree else MOST_ROWS)
        self.in_place = _in_place(frames)
        self.num_forks = sum(row.parent is not None for row in self.layout.tree.values())
        self.sum_y = self.layout.bottom + 16
        self.free_top = self.sum_y + 14
        self.legend_y = self.free_top + 46
        free_right = MARGIN + 128 + CHIP_STEP * first.num_blocks
        right = max(self.layout.right + BESIDE, free_right + MARGIN)
        self.width = WIDTH if tree else min(WIDTH, max(_LEAST_WIDTH, right))


def draw_sharing(
    scene: SharingScene,
    frames: Sequence[Frame],
    step: int,
    *,
    uid: str | None = None,
    standalone: bool = False,
) -> str:
    """The SVG of one frame. standalone adds theme and telling, for pages without a kernel."""
    frame, layout = frames[step], scene.layout
    state, wrong = frame.state, set(frame.bad_blocks)
    placed = layout.placed(state, step)
    canvas = Canvas(scene.width, scene.legend_y + 10)
    if scene.tree:
        draw_tree(canvas, scene.tree, step, _TOP, layout.paints)
    _draw_rows(canvas, layout, state)
    draw_pointers(canvas, layout, placed, state, _fork_of(frame), wrong)
    draw_pool(canvas, placed, read_blocks(state), layout.paints, wrong=wrong)
    for rid, slots in frame.slots.items():
        draw_written(canvas, placed, layout.paints, state, rid, slots)
    for copy in frame.copies:
        _draw_copy(canvas, placed, copy)
    for block in scene.in_place[step]:
        if placed.shows(block):
            x, y = placed.corner(block)
            canvas.text(x + placed.pad, y + placed.block_height + 13, "in place now", 10.5, **_LABEL)
    canvas.text(MARGIN, scene.sum_y, sum_up(state), 12, weight=600)
    freed = {event.block for event in frame.events if event.kind == "free"}
    draw_free_list(canvas, scene.free_top, state, freed, wrong, scene.width - MARGIN)
    if len(state.tables) <= layout.most:  # a crowd costs elements enough without its legend
        legend(canvas, scene.legend_y, block_size=state.block_size, shared=True, wrong=bool(wrong))
    if frame.error:
        draw_sentence(canvas, f"Wrong: {frame.error}", FOCUS, 700)
    line = tell_sharing(scene, frames, step)
    if standalone:
        draw_sentence(canvas, line, INK, 600)
    return canvas.svg(line, step=step, uid=uid, standalone=standalone)


def tell_sharing(scene: SharingScene, frames: Sequence[Frame], step: int) -> str:
    """The step in one line: its number, what happened, who writes in place, and what went wrong."""
    frame = frames[step]
    said = [f"step {step} of {len(frames) - 1}  {frame.telling}"]
    for block, rid in scene.in_place[step].items():
        said.append(f"Block {block} was shared; {rid} is its last holder and writes in place.")
    if frame.error:
        said.append(f"Wrong: {frame.error}.")
    return " ".join(said).replace("..", ".")


def sum_up(state: State) -> str:
    """What sharing saves, in one sentence."""
    entries = [block for table in state.tables.values() for block in table]
    named, used = len(entries), len(set(entries))
    if not entries:
        return "No table names a block."
    blocks = f"{named} block{'s' * (named != 1)}"
    if named == used:
        return f"The tables name {blocks}, each held once: nothing is shared."
    in_use = f"{used} {'is' if used == 1 else 'are'} in use"
    return f"The tables name {blocks} and {in_use}: sharing saves {named - used}."


def _in_place(frames: Sequence[Frame]) -> list[dict[int, Hashable]]:
    """For each step the blocks that were shared once and are now written by the last holder: block -> who."""
    found: list[dict[int, Hashable]] = []
    shared: set[int] = set()
    for frame in frames:
        counts: dict[int, int] = {}
        for table in frame.state.tables.values():
            for block in set(table):
                counts[block] = counts.get(block, 0) + 1
        shared &= counts.keys()
        here = {}
        for rid, slots in frame.slots.items():
            first = slots[0] if slots else None
            if first is None or not first.offset or first.copied_from is not None:
                continue
            if first.block in shared and counts.get(first.block) == 1:
                here[first.block] = rid
        shared |= {block for block, count in counts.items() if count > 1}
        shared -= here.keys()
        found.append(here)
    return found


def _fork_of(frame: Frame) -> Hashable | None:
    operation = frame.operation
    return operation.other if operation is not None and operation.kind == "fork" else None


def _draw_rows(canvas: Canvas, layout: SharingLayout, state: State) -> None:
    """The tree, the lengths and the heads of the columns."""
    middles = layout.middles(state)
    head, first = layout.top + 12, layout.first_entry(state)
    length_right = layout.start - 8
    canvas.text(MARGIN, head, "who forked whom", 10.5, fill=MUTED)
    canvas.text(length_right, head, "length", 10.5, fill=MUTED, anchor="end")
    for place in range(layout.columns):
        x = layout.column(place)
        if place:
            canvas.digits(x, head, first + place, 10.5, fill=MUTED, weight=400, anchor="start")
        else:
            canvas.text(x, head, f"… entry {first}" if first else "entry 0", 10.5, fill=MUTED)
    for rid, middle in middles.items():
        row, paint = layout.tree[rid], layout.paints[rid]
        x, top = MARGIN + layout.indent(row), middle - CHIP_HEIGHT / 2
        if row.parent in middles and layout.indent(row) > layout.indent(layout.tree[row.parent]):
            parent_x = MARGIN + layout.indent(layout.tree[row.parent]) + 9
            bend = [(parent_x, middles[row.parent] + CHIP_HEIGHT / 2), (parent_x, middle), (x, middle)]
            canvas.path(route(bend), fill="none", stroke=STRONG, stroke_width=1.4)
        live = rid in state.tables
        draw_name(canvas, x, top, name_width(rid, paint), rid, paint, live)
        words = state.lengths[rid] if live else "–"
        canvas.digits(length_right, top + 15, words, 12, weight=400, anchor="end")
    left_out = len(state.tables) - sum(rid in middles for rid in state.tables)
    if left_out:
        note = f"{left_out} more table{'s are' if left_out > 1 else ' is'} not drawn."
        canvas.text(MARGIN, layout.bottom - 4, note, 10.5, fill=MUTED)


def _draw_copy(canvas: Canvas, placed: PlacedBlocks, copy: BlockCopy) -> None:
    """An arrow from the copied slots to where they went, with how many they are."""
    if not (placed.shows(copy.source) and placed.shows(copy.destination)):
        return
    source, target = placed.corner(copy.source), placed.corner(copy.destination)
    down = target[1] > source[1]
    start = source[1] + (placed.block_height if down else 0)
    end = target[1] + (0 if down else placed.block_height)
    count = max(1, min(copy.num_slots, placed.block_size))
    x = source[0] + placed.pad + placed.slot_width / 2
    words = f"copy {copy.num_slots} slot{'' if copy.num_slots == 1 else 's'}"
    if source[0] == target[0] and abs(end - start) < _NEAR:
        canvas.path(route([(x, start), (x, end)]), 5, fill="none", stroke=FOCUS, stroke_width=2)
        canvas.path(arrow_head(x, end, "down" if down else "up", 5), 5, fill=FOCUS)
        canvas.text(x + 8, start + (13 if down else -6), words, 10.5, **_LABEL)
    else:
        lane = target[0] + placed.block_width + 8
        middle = target[1] + placed.block_height / 2
        near = start + (9 if down else -9)
        points = [(x, start), (x, near), (lane, near), (lane, middle), (lane - 8, middle)]
        canvas.path(route(points), 5, fill="none", stroke=FOCUS, stroke_width=2)
        canvas.path(arrow_head(lane - 8, middle, "left", 4), 5, fill=FOCUS)
        wide = lane - x > text_width(words, 10.5, 700) + 20
        canvas.text(x + 10 if wide else x + 4, near + 4, words, 10.5, plate=True, **_LABEL)
    for left, top in (source, target):
        y = top + placed.head + placed.slot_height + 2.5
        canvas.path(rect(left + placed.pad, y, placed.span(count), 2, 1), 5, fill=FOCUS)


def blocks_beyond(state: State, placed: PlacedBlocks) -> list[int]:
    """Held blocks for which the picture has no room."""
    held = {b for table in state.tables.values() for b in table if is_block(b, state.num_blocks)}
    return sorted(held - set(placed.shown))
