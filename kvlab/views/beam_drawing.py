"""Draw the tree of beams: a column for each step, a box for each beam's token, the dead dashed and faint."""

from collections.abc import Hashable, Mapping

from kvlab.views.beam_steps import BeamTree
from kvlab.views.palette import Paint
from kvlab.views.paths import num, rect
from kvlab.views.pool_layout import MARGIN, WIDTH
from kvlab.views.svg import Canvas
from kvlab.views.theme import CARD, EDGE, INK, LINE, MUTED, STRONG

_PITCH, _WIDTH, _HEIGHT, _ROW, _HEAD = 118, 70, 20, 28, 20
_SCORES = 60
_ROOM = int((WIDTH - 2 * MARGIN - _SCORES) // _PITCH)
_MOST_BEAMS = 5


def tree_height(tree: BeamTree) -> float:
    """How much of the figure the tree takes."""
    most = max(max(len(step.beams), len(step.ended)) for step in tree.steps)
    return _HEAD + _ROW * min(_MOST_BEAMS, most) + 12


def draw_tree(
    canvas: Canvas, tree: BeamTree, frame: int, top: float, paints: Mapping[Hashable, Paint]
) -> None:
    """The last steps up to a frame, best beam first in each column; at the right the log probabilities."""
    done = tree.shown[min(frame, len(tree.shown) - 1)]
    first = max(0, done - _ROOM)
    if not done:
        words = "The tree of beams grows here: a column a step, the likeliest beam on top."
        canvas.text(MARGIN, top + 12, words, 10.5, fill=MUTED)
        return
    alive = living(tree, done)
    for step in range(first, done):
        x = MARGIN + (step - first) * _PITCH
        if step == first:
            words = f"… step {step}" if first else f"step {step}"
            canvas.text(x, top + 12, words, 10.5, fill=MUTED)
        else:
            canvas.digits(x, top + 12, step, 10.5, fill=MUTED, weight=400, anchor="start")
        _draw_step(canvas, tree, step, x, top + _HEAD, paints, alive[step])
    last = tree.steps[done - 1]
    x = MARGIN + (done - 1 - first) * _PITCH + _WIDTH + 8
    found = [beam.log_probability for beam in last.beams] or [one.log_probability for one in last.ended]
    if found:
        canvas.text(x, top + 12, "log p", 10.5, fill=MUTED)
    for rank, log_probability in enumerate(found[:_MOST_BEAMS]):
        words = f"{log_probability:.2f}".replace("-", "−")
        y = top + _HEAD + rank * _ROW + 14
        canvas.digits(x, y, words, 9.5, anchor="start", mono=True, weight=400)


def living(tree: BeamTree, done: int) -> list[set[Hashable]]:
    """For each of the first steps the beams whose tokens lead to a live beam or to a finished one."""
    alive: list[set[Hashable]] = [set() for _ in range(done)]
    for step in range(done - 1, -1, -1):
        now = tree.steps[step]
        if step == done - 1:
            alive[step] = {beam.request_id for beam in now.beams}
        parents = {beam.parent for beam in now.beams if beam.request_id in alive[step]}
        if not now.beams:
            parents |= {one.parent for one in now.ended}
        if step:
            alive[step - 1] = parents
    return alive


def _draw_step(canvas, tree: BeamTree, step: int, x: float, top: float, paints, alive: set[Hashable]) -> None:
    now = tree.steps[step]
    ranks = {beam.request_id: rank for rank, beam in enumerate(tree.steps[step - 1].beams)} if step else {}
    for rank, beam in enumerate((now.beams or now.ended)[:_MOST_BEAMS]):
        y = top + rank * _ROW
        live = not now.beams or beam.request_id in alive
        paint = paints.get(beam.request_id) if now.beams else None
        _draw_token(canvas, x, y, tree.text(beam.tokens[-1]), paint, live)
        before = ranks.get(beam.parent)
        if before is not None and before < _MOST_BEAMS and x > MARGIN:
            _draw_edge(canvas, x, y + _HEIGHT / 2, top + before * _ROW + _HEIGHT / 2, live)


def _draw_token(canvas: Canvas, x: float, y: float, text: str, paint: Paint | None, live: bool) -> None:
    """A token's box: in its beam's colour, bare once it has ended, dashed where it leads to no live beam."""
    box = rect(x, y, _WIDTH, _HEIGHT, 5)
    if not live:
        canvas.path(box, 1, fill=CARD, stroke=LINE, stroke_dasharray="3 2")
    elif paint is None:
        canvas.path(box, 1, fill=CARD, stroke=INK, stroke_width=1.6)
    else:
        canvas.path(box, 1, fill=paint.fill, stroke=EDGE)
    ink = MUTED if not live else paint.ink if paint else INK
    shown = text.strip() or "␣"
    shown = shown if len(shown) <= 9 else shown[:8] + "…"
    canvas.digits(x + _WIDTH / 2, y + 13.5, shown, 10, fill=ink, weight=400, mono=True)


def _draw_edge(canvas: Canvas, x: float, y: float, before: float, live: bool) -> None:
    """From the token of the step before to this one."""
    start, bend = x - _PITCH + _WIDTH, (_PITCH - _WIDTH) / 2
    if y == before:
        data = f"M{num(start)} {num(y)}H{num(x)}"
    else:
        middle = num(start + bend)
        data = f"M{num(start)} {num(before)}C{middle} {num(before)} {middle} {num(y)} {num(x)} {num(y)}"
    canvas.path(data, fill="none", stroke=STRONG if live else LINE, stroke_width=1.4)
