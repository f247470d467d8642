"""Draw one frame of the prefix cache: prompts and their chain of hashes above, the free queue below."""

from collections.abc import Sequence

from kvlab.views.palette import Paint
from kvlab.views.paths import rect
from kvlab.views.pool_layout import MARGIN
from kvlab.views.prefix_layout import QUEUE_BOX, PrefixLayout
from kvlab.views.prefix_rows import KNOWN_HASH, UNKNOWN_HASH, draw_rows
from kvlab.views.prefix_steps import PrefixFrame
from kvlab.views.prefix_telling import short_hash, sum_up
from kvlab.views.prompt_tokens import Token
from kvlab.views.sentences import draw_sentence
from kvlab.views.slot_drawing import KEPT
from kvlab.views.svg import Canvas
from kvlab.views.text import clip_text, text_width
from kvlab.views.theme import CARD, EDGE, FOCUS, INK, LINE, MUTED, STRONG


def draw_prefix(
    layout: PrefixLayout,
    frames: Sequence[PrefixFrame],
    step: int,
    *,
    problem: str | None = None,
    uid: str | None = None,
    standalone: bool = False,
) -> str:
    """The SVG of one frame. problem: what is wrong with the prompt that was typed."""
    frame = frames[step]
    canvas = Canvas(layout.width, layout.height)
    draw_rows(canvas, layout, frame)
    _draw_queue(canvas, layout, frame)
    _draw_legend(canvas, layout)
    if problem:
        draw_sentence(canvas, problem, FOCUS, 700)
    if frame.error:
        draw_sentence(canvas, f"Wrong: {frame.error}", FOCUS, 700)
    line = tell_prefix(frames, step)
    if standalone:
        draw_sentence(canvas, line, INK, 600)
    return canvas.svg(line, step=step, uid=uid, standalone=standalone)


def tell_prefix(frames: Sequence[PrefixFrame], step: int) -> str:
    """The step in one line: its number, what happened, and what went wrong."""
    frame = frames[step]
    error = f" Wrong: {frame.error}." if frame.error else ""
    return f"step {step} of {len(frames) - 1}  {frame.telling}{error}".replace("..", ".")


def _draw_queue(canvas: Canvas, layout: PrefixLayout, frame: PrefixFrame) -> None:
    """The free blocks in the order in which they will be handed out, with what they still hold."""
    y = layout.queue_title
    canvas.text(MARGIN, y, sum_up(frame), 12, weight=600)
    asked, found = frame.asked_and_found
    counted = f"tokens asked for {asked}, found {found}"
    canvas.text(layout.width - MARGIN, y, counted, 10.5, fill=MUTED, anchor="end")
    canvas.text(MARGIN, y + 17, "free queue: taken first", 10.5, fill=MUTED)
    free, room = frame.state.free, layout.queue_room
    texts = _texts(frame)
    shown = list(free)
    if len(free) > room:
        shown[room // 2 : len(free) - room + room // 2 + 1] = [None]
    for place, block in enumerate(shown):
        if block is None:
            x, top = layout.queue_box(place)
            canvas.text(x + 8, top + 30, f"… {len(free) - room + 1} more", 10.5, fill=MUTED)
        else:
            _draw_free_block(canvas, layout, frame, place, block, texts)
    if len(shown) > 2:
        right = layout.queue_box(len(shown) - 1)[0] + layout.queue_width
        canvas.text(right, y + 17, "taken last", 10.5, fill=MUTED, anchor="end")


def _draw_free_block(canvas, layout, frame, place, block, texts) -> None:
    x, y = layout.queue_box(place)
    width = layout.queue_width
    link = frame.contents.get(block)
    wrong = block in frame.bad_blocks
    style = {"stroke": FOCUS if wrong else STRONG if link or not place else LINE}
    dashes = {"stroke_dasharray": "4 3"} if link or wrong else {}
    canvas.path(rect(x, y, width, QUEUE_BOX, 8), fill=CARD, stroke_width=1.2, **style, **dashes)
    if block in frame.freed:
        outer = rect(x - 3, y - 3, width + 6, QUEUE_BOX + 6, 10)
        canvas.path(outer, 1, fill="none", stroke=FOCUS, stroke_width=2)
    canvas.text(x + 8, y + 14, f"block {block}", 10.5, fill=MUTED)
    if link is None:
        return
    canvas.digits(x + width - 8, y + 14, short_hash(link), 10, fill=MUTED, mono=True, anchor="end")
    canvas.path(rect(x + 7.5, y + 22.5, width - 15, 22, 4), 1, **KEPT)
    words = " ".join(token.text.strip() for token in texts.get(link.proof, ()))
    canvas.text(x + 12, y + 37, clip_text(words, width - 24, 9.5), 9.5, fill=MUTED)


def _texts(frame: PrefixFrame) -> dict[bytes, tuple[Token, ...]]:
    """The tokens of every known block, by its content."""
    size, found = frame.state.block_size, {}
    for rid, chain in frame.chains.items():
        for i, link in enumerate(chain):
            found.setdefault(link.proof, frame.tokens[rid][i * size : (i + 1) * size])
    return found


def _draw_legend(canvas: Canvas, layout: PrefixLayout) -> None:
    paint: Paint = next(iter(layout.paints.values()))
    x, y = MARGIN, layout.legend_y
    entries = (
        ("computed", {"fill": paint.fill, "stroke": EDGE}),
        ("hit: found, nothing to compute", {"fill": paint.fill, "fill_opacity": ".16", "stroke": paint.fill}),
        ("free, content kept", KEPT),
        ("a hash that can be found", KNOWN_HASH),
        ("a hash that no block holds", UNKNOWN_HASH),
    )
    for words, style in entries:
        canvas.path(rect(x + 0.5, y - 10.5, 13, 13, 3 if "hash" not in words else 6), **style)
        canvas.text(x + 20, y, words, 10.5, fill=MUTED)
        x += 34 + text_width(words, 10.5)
