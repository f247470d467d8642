"""Draw one frame of a recording: tables, free list, pool, and what this step did."""

from collections.abc import Hashable, Mapping, Sequence

from kvlab.block_table import BlockCopy
from kvlab.recording import Frame
from kvlab.views.contents import is_block, read_blocks, request_ids
from kvlab.views.legend import legend
from kvlab.views.palette import Paint, paints
from kvlab.views.paths import arrow_head, route
from kvlab.views.pool_drawing import draw_pool
from kvlab.views.pool_layout import MARGIN, WIDTH, PoolLayout
from kvlab.views.sentences import draw_sentence
from kvlab.views.svg import Canvas
from kvlab.views.tables_drawing import CHIP_STEP, TablesLayout, draw_free_list, draw_tables
from kvlab.views.text import text_width
from kvlab.views.theme import FOCUS, INK
from kvlab.views.written import draw_written

_TOP = 12
_LEAST_WIDTH = 560


class Scene:
    """What stays the same from frame to frame: colours, rows and places, so that nothing jumps."""

    def __init__(self, frames: Sequence[Frame]):
        states = [frame.state for frame in frames]
        first = states[0]
        self.paints: Mapping[Hashable, Paint] = paints(request_ids(states))
        longest = max((len(table) for state in states for table in state.tables.values()), default=1)
        self.tables = TablesLayout(self.paints, longest, _TOP)
        self.free_top = self.tables.bottom + 2
        used = {b for state in states for table in state.tables.values() for b in table}
        shown = [b for b in used if is_block(b, first.num_blocks)]
        top = self.free_top + 26
        self.pool = PoolLayout(
            first.num_blocks,
            first.block_size,
            top,
            lanes=True,
            must_show=shown,
            tail=any(frame.copies for frame in frames),
        )
        self.shared = any(len(state.holders(b)) > 1 for state in states for b in shown)
        free_right = MARGIN + 128 + CHIP_STEP * first.num_blocks
        right = max(self.pool.right, self.tables.right, free_right) + MARGIN
        self.width = min(WIDTH, max(_LEAST_WIDTH, right))
        self.legend_y = self.pool.bottom + (22 if not self.pool.hidden else 40)


def draw_frame(
    scene: Scene, frames: Sequence[Frame], step: int, *, uid: str | None = None, standalone: bool = False
) -> str:
    """The SVG of one frame. standalone adds theme and telling, for pages without a kernel."""
    frame = frames[step]
    wrong = set(frame.bad_blocks)
    canvas = Canvas(scene.width, scene.legend_y + 10)
    draw_tables(canvas, scene.tables, frame.state, scene.paints, _lit_entries(frame), wrong)
    freed = {event.block for event in frame.events if event.kind == "free"}
    draw_free_list(canvas, scene.free_top, frame.state, freed, wrong, scene.width - MARGIN)
    draw_pool(canvas, scene.pool, read_blocks(frame.state), scene.paints, wrong=wrong)
    for rid, slots in frame.slots.items():
        draw_written(canvas, scene.pool, scene.paints, frame.state, rid, slots)
    _draw_copies(canvas, scene.pool, frame.copies)
    legend(canvas, scene.legend_y, block_size=frame.state.block_size, shared=scene.shared, wrong=bool(wrong))
    if frame.error:
        draw_sentence(canvas, f"Wrong: {frame.error}", FOCUS, 700)
    if standalone:
        draw_sentence(canvas, f"step {step} of {len(frames) - 1}\u2003{frame.telling}", INK, 600)
    return canvas.svg(tell(frames, step), step=step, uid=uid, standalone=standalone)


def tell(frames: Sequence[Frame], step: int) -> str:
    """The step in one line: its number, what happened, and what went wrong."""
    frame = frames[step]
    error = f" Wrong: {frame.error}." if frame.error else ""
    return f"step {step} of {len(frames) - 1}  {frame.telling}{error}".replace("..", ".")


def _lit_entries(frame: Frame) -> dict[Hashable, set[int]]:
    """The table entries that the step is about: those written to, or all of a fork's."""
    lit: dict[Hashable, set[int]] = {}
    for rid, slots in frame.slots.items():
        blocks = {slot.block for slot in slots if slot.block is not None}
        table = frame.state.tables.get(rid, ())
        lit[rid] = {i for i, block in enumerate(table) if block in blocks}
    operation = frame.operation
    if operation is not None and operation.kind == "fork":
        lit[operation.other] = set(range(len(frame.state.tables.get(operation.other, ()))))
    return lit


def _draw_copies(canvas: Canvas, pool: PoolLayout, copies: Sequence[BlockCopy]) -> None:
    """An arrow from source to destination through the lanes between the rows, with the number of slots."""
    for i, copy in enumerate(copies):
        if not (pool.shows(copy.source) and pool.shows(copy.destination)):
            continue
        points = _copy_route(pool, copy.source, copy.destination, 3 * (i % 3))
        canvas.path(route(points), 5, fill="none", stroke=FOCUS, stroke_width=1.8)
        direction = "right" if points[-1][0] > points[-2][0] else "left"
        canvas.path(arrow_head(*points[-1], direction, 4 if pool.labelled else 3), 5, fill=FOCUS)
        words = f"copy {copy.num_slots} slot{'' if copy.num_slots == 1 else 's'}"
        size = 10.5 if pool.labelled else 9
        (x, y), (end, _) = points[1:3]
        wide = abs(x - end) > text_width(words, size, 700) + 24
        beside = (x - 6, "end") if end > x and x > pool.block_width else (x + 6, "start")
        place, anchor = ((x + end) / 2, "middle") if wide else beside
        canvas.text(place, y + 3.5, words, size, fill=FOCUS, weight=700, anchor=anchor, layer=6, plate=True)


def _copy_route(pool: PoolLayout, source: int, destination: int, shift: float):
    """Corner points of the arrow, from under the source into the near side of the destination."""
    half = pool.block_width / 2
    source_x, source_y = pool.corner(source)
    target_x, target_y = pool.corner(destination)
    from_x = source_x + half + shift
    bottom = source_y + pool.block_height
    lane = bottom + (9 if pool.labelled else 6) + shift
    middle = target_y + pool.block_height / 2 + shift
    if from_x <= target_x + half + shift:
        edge, gutter = target_x, target_x - pool.column_gap / 2 - 2
    else:
        edge, gutter = target_x + pool.block_width, target_x + pool.block_width + pool.column_gap / 2 + 2
    return [(from_x, bottom), (from_x, lane), (gutter, lane), (gutter, middle), (edge, middle)]
