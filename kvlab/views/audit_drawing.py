"""Draw a sentinel audit: the pool as the tables say it is, and each slot that holds something else."""

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from kvlab.state import State
from kvlab.views.audit_findings import Finding, content, slot_runs
from kvlab.views.contents import read_blocks, request_ids
from kvlab.views.palette import Paint, paints
from kvlab.views.paths import arrow_head, num, rect, route
from kvlab.views.pool_drawing import draw_pool
from kvlab.views.pool_layout import MARGIN, PoolLayout
from kvlab.views.sentences import draw_sentence
from kvlab.views.slot_drawing import ring
from kvlab.views.svg import Canvas
from kvlab.views.text import clip_text, text_width
from kvlab.views.theme import CARD, EDGE, FOCUS, INK, LINE, MUTED

_LEAST_WIDTH = 700
_PANEL = 92
_MOST_CELLS = 48
_CELL = 13


class AuditView(NamedTuple):
    """What an audit found in a state. num_layers and num_kv_heads: of the cache, for the map of records."""

    state: State
    findings: Sequence[Finding]
    num_layers: int
    num_kv_heads: int


def tell_audit(view: AuditView, step: int) -> str:
    """Step 0 sums up; step n is the n-th wrong slot."""
    count = len(view.findings)
    if not count:
        return "Every token's K and V is where its block table says."
    if step == 0:
        records = sum(len(finding.mismatches) for finding in view.findings)
        return (
            f"{records} wrong record{'s' if records > 1 else ''} in {count} slot{'s' if count > 1 else ''}. "
            "Next shows them one by one."
        )
    return f"wrong slot {step} of {count}  {view.findings[step - 1].sentence}"


def draw_audit(view: AuditView, step: int, *, uid: str | None = None, standalone: bool = False) -> str:
    """The SVG of one step of the audit."""
    state, findings = view.state, view.findings
    must_show = [finding.block for finding in findings if finding.has_slot]
    pool = PoolLayout(state.num_blocks, state.block_size, 0, lanes=True, must_show=must_show)
    height = pool.bottom + (24 if pool.hidden else 8) + (_PANEL if findings else 0)
    canvas = Canvas(max(_LEAST_WIDTH, pool.right + MARGIN), height)
    colours = paints(request_ids([state]))
    draw_pool(canvas, pool, read_blocks(state), colours)
    current = findings[step - 1] if findings and step else None
    for block, start, count in slot_runs(findings, current):
        if pool.shows(block) and start + count <= state.block_size:
            ring(canvas, pool, block, start, count, dashed=True)
    if current is not None:
        _point_at(canvas, pool, current)
        _draw_panel(canvas, view, current, colours, height - _PANEL + 8)
    elif findings:
        note = "dashed: a slot that does not hold what the block table says"
        canvas.text(MARGIN, height - _PANEL + 22, note, 10.5, fill=MUTED)
    _draw_words(canvas, view, step, standalone)
    return canvas.svg(tell_audit(view, step), step=step, uid=uid, standalone=standalone)


def _draw_words(canvas: Canvas, view: AuditView, step: int, standalone: bool) -> None:
    words = tell_audit(view, step)
    if step and view.findings:
        draw_sentence(canvas, view.findings[step - 1].sentence, FOCUS, 700)
    elif standalone or not view.findings:
        draw_sentence(canvas, words, INK, 700)


def _point_at(canvas: Canvas, pool: PoolLayout, finding: Finding) -> None:
    if not (pool.shows(finding.block) and 0 <= finding.offset < pool.block_size):
        return
    ring(canvas, pool, finding.block, finding.offset, 1)
    x, y = pool.slot_center(finding.block, finding.offset), pool.corner(finding.block)[1]
    canvas.path(route([(x, y - (15 if pool.labelled else 9)), (x, y - 4)]), 5, fill="none", stroke=FOCUS)
    canvas.path(arrow_head(x, y, "down", 4 if pool.labelled else 3), 5, fill=FOCUS)


def _draw_panel(canvas: Canvas, view: AuditView, finding: Finding, colours, top: float) -> None:
    """What the table says beside what the slot holds, and which of the slot's records are wrong."""
    first = finding.mismatches[0]
    x = _draw_content(canvas, MARGIN, top, "the table says", first.expected, colours)
    canvas.path(
        route([(x + 6, top + 35), (x + 40, top + 35)]), 2, fill="none", stroke=FOCUS, stroke_width=1.8
    )
    canvas.path(arrow_head(x + 44, top + 35, "right", 4), 2, fill=FOCUS)
    found = first.found if first.state != "stale" else f"{first.found}, stale"
    x = _draw_content(canvas, x + 54, top, "the slot holds", found, colours)
    if finding.has_slot and view.num_layers * view.num_kv_heads <= _MOST_CELLS:
        _draw_records(canvas, view, finding.wrong_records(), max(x + 40, 360), top)


def _draw_content(
    canvas: Canvas, x: float, top: float, title: str, text: str, colours: Mapping[Hashable, Paint]
) -> float:
    """A record as a slot, in the colour of its request. Returns the right end."""
    canvas.text(x, top + 12, title, 10.5, fill=MUTED)
    paint = {str(rid): paint for rid, paint in colours.items()}.get((content(text) or ("",))[0])
    words = clip_text(text, 190, 12, 700)
    width = max(52, text_width(words, 12, 700) + 14)
    style = {"fill": paint.fill, "stroke": EDGE} if paint else {"fill": CARD, "stroke": MUTED}
    dashes = {} if paint and "stale" not in text else {"stroke_dasharray": "4 3"}
    canvas.path(rect(x + 0.5, top + 21.5, width, 27, 5), 1, **style, **dashes)
    ink = paint.ink if paint else INK
    canvas.text(x + width / 2, top + 39.5, words, 12, fill=ink, weight=700, anchor="middle")
    return x + max(width, text_width(title, 10.5))


def _draw_records(
    canvas: Canvas, view: AuditView, wrong: set[tuple[int, int, str]], x: float, top: float
) -> None:
    """A map of the slot's records, one cell for each layer, head, K or V; the wrong ones crossed."""
    canvas.text(x, top + 12, "its records, a column for each layer and KV head", 10.5, fill=MUTED)
    for row, kind in enumerate("KV"):
        y = top + 22 + row * (_CELL + 3)
        canvas.digits(x + 5, y + 11, kind, 10.5, fill=MUTED)
        for layer in range(view.num_layers):
            for head in range(view.num_kv_heads):
                cell_x = x + 16 + layer * (view.num_kv_heads * (_CELL + 2) + 8) + head * (_CELL + 2)
                bad = (layer, head, kind) in wrong
                style = {"fill": CARD, "stroke": FOCUS} if bad else {"fill": "none", "stroke": LINE}
                canvas.path(rect(cell_x + 0.5, y + 0.5, _CELL - 1, _CELL - 1, 2), 1, **style)
                if bad:
                    cross = f"M{num(cell_x + 3.5)} {num(y + 3.5)}l6 6m0-6l-6 6"
                    canvas.path(cross, 2, fill="none", stroke=FOCUS, stroke_width=1.8)
    for layer in range(view.num_layers):
        middle = x + 16 + layer * (view.num_kv_heads * (_CELL + 2) + 8) + view.num_kv_heads * (_CELL + 2) / 2
        canvas.digits(middle - 1, top + 66, layer, 10, fill=MUTED, weight=400)
