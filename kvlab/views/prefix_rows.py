"""Draw the prompts: their tokens block by block, what each block's KV cost, and the chain of hashes below."""

from collections.abc import Hashable, Sequence

from kvlab.prefix_cache import ChainLink
from kvlab.views.palette import Paint
from kvlab.views.paths import arrow_head, rect, route
from kvlab.views.pool_layout import MARGIN
from kvlab.views.prefix_layout import BOX, PILL, PrefixLayout
from kvlab.views.prefix_steps import PrefixFrame
from kvlab.views.prefix_telling import short_hash
from kvlab.views.prompt_tokens import Token
from kvlab.views.svg import Canvas
from kvlab.views.tables_drawing import draw_name
from kvlab.views.text import clip_text
from kvlab.views.theme import CARD, EDGE, FOCUS, INK, LINE, MUTED, STRONG

PILL_WIDTH = 40
TILE_TOP, TILE = 20, 22
KNOWN_HASH = {"fill": CARD, "stroke": INK, "stroke_width": 1.6}
UNKNOWN_HASH = {"fill": CARD, "stroke": STRONG, "stroke_dasharray": "3 2"}

_HEAD_SIZE = 10.5
_SHORT = 3  # comparisons up to this length share one element


def draw_rows(canvas: Canvas, layout: PrefixLayout, frame: PrefixFrame) -> None:
    """A row for each prompt, in the order in which they were given."""
    for row, rid in enumerate(layout.ids):
        _draw_name(canvas, layout, frame, row, rid)
        tokens, size = frame.tokens[rid], layout.block_size
        num_blocks = -(-len(tokens) // size)
        shown = min(num_blocks, layout.num_columns)
        for column in range(shown):
            _draw_box(canvas, layout, frame, row, rid, column)
        _draw_chain(canvas, layout, frame, row, rid, shown)
        if num_blocks > shown:
            x = layout.left + shown * layout.pitch - 16
            words = f"… {num_blocks - shown} more"
            canvas.text(x, layout.row(row) - 2 + BOX + 14, words, 10, fill=MUTED, anchor="end")


def _draw_name(canvas: Canvas, layout: PrefixLayout, frame: PrefixFrame, row: int, rid: Hashable) -> None:
    y = layout.row(row)
    live = rid in frame.state.tables
    draw_name(canvas, MARGIN, y + TILE_TOP, 28, layout.paints[rid].label, layout.paints[rid], live)
    words = "live" if live else "ended" if rid in frame.ended else "to come"
    canvas.text(MARGIN, y + 13, words, 10, fill=MUTED)
    if layout.paints[rid].label != str(rid):
        canvas.text(MARGIN, y + BOX + 22, clip_text(str(rid), 52, 10), 10)


def _draw_box(canvas, layout, frame, row, rid, column) -> None:
    """One block of a prompt: what became of it, and its tokens."""
    x, y = layout.box(row, column)
    words, strong = describe(frame, rid, column)
    acted = frame.operation is not None and frame.operation.request_id == rid and rid in frame.found
    hit = column < frame.found.get(rid, 0) // layout.block_size
    ringed = acted and bool(frame.touched) and hit
    if ringed:
        outer = rect(x - 2.5, y - 2.5, layout.box_width + 5, BOX + 5, 10)
        canvas.path(outer, 1, fill="none", stroke=FOCUS, stroke_width=2)
    live = rid in frame.state.tables
    dashed = {} if live else {"stroke_dasharray": "4 3"}
    canvas.path(rect(x, y, layout.box_width, BOX, 8), fill=CARD, stroke=STRONG, stroke_width=1.2, **dashed)
    words = clip_text(words, layout.box_width - 14, _HEAD_SIZE, 700 if strong else 400)
    fill, weight = (INK, 700) if strong else (MUTED, 400)
    canvas.text(x + 8, y + 14, words, _HEAD_SIZE, fill=FOCUS if ringed else fill, weight=weight)
    size = layout.block_size
    tokens = frame.tokens[rid][column * size : (column + 1) * size]
    kind = "plain" if not live else "hit" if hit else "computed"
    draw_tiles(canvas, layout, x + 7, y + TILE_TOP, layout.box_width - 14, tokens, kind, layout.paints[rid])


def describe(frame: PrefixFrame, rid: Hashable, column: int) -> tuple[str, bool]:
    """What became of a prompt's block, and whether to stress it."""
    table = frame.state.tables.get(rid)
    if table is not None and column < len(table):
        block = table[column]
        if column < frame.found[rid] // frame.state.block_size:
            return f"hit: block {block}", True
        lost = frame.evicted.get(block)
        return (f"block {block}, was {short_hash(lost)}", True) if lost else (f"block {block}", False)
    chain = frame.chains[rid]
    if rid not in frame.ended or column >= len(chain):
        return "", False
    for block, link in frame.contents.items():
        if link.proof == chain[column].proof:
            return f"still in block {block}", False
    return "gone", False


def draw_tiles(
    canvas: Canvas,
    layout: PrefixLayout,
    x: float,
    y: float,
    width: float,
    tokens: Sequence[Token],
    kind: str,
    paint: Paint | None,
) -> None:
    """Tokens side by side. kind: "computed" (filled), "hit" (outlined in its colour) or "plain"."""
    style = {
        "computed": {"fill": paint.fill, "stroke": EDGE},
        "hit": {"fill": paint.fill, "fill_opacity": ".16", "stroke": paint.fill},
        "plain": {"fill": "none", "stroke": LINE},
    }[kind]
    ink = paint.ink if kind == "computed" else INK if kind == "hit" else MUTED
    if not layout.tiles:
        canvas.path(rect(x, y, width, TILE, 4), 1, **style)
        words = " ".join(token.text.strip() for token in tokens)
        canvas.text(x + 5, y + 15, clip_text(words, width - 10, 10), 10, fill=ink)
        return
    widths = _tile_widths([token.text for token in tokens], width, layout.block_size)
    for token, tile in zip(tokens, widths, strict=True):
        canvas.path(rect(x + 0.5, y + 0.5, tile - 1, TILE - 1, 4), 1, **style)
        _draw_token(canvas, x, y, tile, token.text, ink)
        x += tile + 2


def _draw_token(canvas: Canvas, x: float, y: float, width: float, text: str, ink: str) -> None:
    """A token's text in its tile, set with the others of its ink in one element."""
    shown = text.strip() or "␣"
    size, step = 9, 0.6 * 9
    most = max(1, int((width - 3) / step))
    if len(shown) > most:
        shown = shown[: max(1, most - 1)] + "…" if most > 2 else shown[:most]
    canvas.digits(x + width / 2, y + 14.5, shown, size, fill=ink, weight=400, mono=True)


def _tile_widths(texts: list[str], width: float, block_size: int) -> list[float]:
    """Shares of the width by the length of the texts; a block that is not full takes less of it."""
    usable = (width - 2 * (block_size - 1)) * len(texts) / block_size
    wanted = [min(9, max(2, len(text.strip()))) for text in texts]
    return [usable * share / sum(wanted) for share in wanted]


def _draw_chain(canvas: Canvas, layout: PrefixLayout, frame: PrefixFrame, row: int, rid, shown: int) -> None:
    """The hash under each full block; an arrow from the hash before it, for it is hashed in."""
    chain = frame.chains[rid]
    middle = layout.pill(row, 0)[1] + PILL / 2
    style = {"fill": "none", "stroke": STRONG, "stroke_width": 1.3}
    for column in range(shown):
        x, y = layout.pill(row, column)
        if column >= len(chain):
            canvas.text(x, y + 12, "not full: no hash", 10, fill=MUTED)
            continue
        known = any(link.proof == chain[column].proof for link in frame.contents.values())
        look = KNOWN_HASH if known else UNKNOWN_HASH
        canvas.path(rect(x, y, PILL_WIDTH, PILL, 8), 2, **look)
        canvas.digits(x + PILL_WIDTH / 2, y + 12.3, short_hash(chain[column]), 10.5, fill=INK, mono=True)
        stem = x + PILL_WIDTH / 2
        canvas.path(route([(stem, layout.row(row) + BOX), (stem, y - 3)]), **style)
        canvas.path(arrow_head(stem, y, "down", 3), fill=STRONG)
        start = layout.pill(row, column - 1)[0] + PILL_WIDTH if column else layout.left - 14
        canvas.path(route([(start, middle), (x - 3, middle)]), **style)
        canvas.path(arrow_head(x, middle, "right", 3), fill=STRONG)
        words = compare(frame, layout.ids[:row], rid, column)
        if len(words) > _SHORT:
            words = clip_text(words, layout.pitch - 6, 10, 600)
            canvas.text(x + 2, y + PILL + 12, words, 10, fill=INK, weight=600)
        else:
            canvas.digits(x + 2, y + PILL + 12, words, 10, anchor="start", mono=True)
    canvas.text(layout.left - 18, middle + 4, "∅", 12, fill=MUTED, anchor="end")


def compare(frame: PrefixFrame, others: Sequence[Hashable], rid: Hashable, column: int) -> str:
    """How a block's hash stands to the same block of the prompts above it."""
    link: ChainLink = frame.chains[rid][column]
    beside = [(other, frame.chains[other][column]) for other in others if column < len(frame.chains[other])]
    for other, theirs in beside:
        if theirs.proof == link.proof:
            return f"= {other}"
        if theirs.key == link.key:
            return f"= {other} by chance: a collision"
    for other, theirs in beside:
        if theirs.tokens == link.tokens:
            return f"≠ {other}, though same tokens"
    return f"≠ {beside[0][0]}" if beside else ""
