"""The line under a figure that says what its signs mean."""

from kvlab.views.paths import rect
from kvlab.views.pool_layout import MARGIN
from kvlab.views.slot_drawing import FREE, KEPT
from kvlab.views.svg import Canvas
from kvlab.views.text import text_width
from kvlab.views.theme import FOCUS, MUTED, STRONG


def legend(
    canvas: Canvas,
    y: float,
    *,
    block_size: int,
    shared: bool = False,
    cached: bool = False,
    wrong: bool = False,
) -> None:
    """One line under a figure that says what outline, hatching and badges mean."""
    x = MARGIN
    entries = [("free", FREE)]
    if block_size > 1:
        hatch = {"fill": canvas.hatch("#8c959f"), "stroke": STRONG}
        entries.append(("taken, no token yet: nobody else can use it", hatch))
    if shared:
        entries.append(("×2: two tables hold it", None))
    if cached:
        entries.append(("free, content kept", KEPT))
    if wrong:
        entries.append(
            (
                "! breaks a rule",
                {"fill": "none", "stroke": FOCUS, "stroke_width": 2, "stroke_dasharray": "4 2"},
            )
        )
    for words, style in entries:
        if style is not None:
            canvas.path(rect(x + 0.5, y - 10.5, 13, 13, 3), **style)
            x += 20
        canvas.text(x, y, words, 10.5, fill=MUTED)
        x += text_width(words, 10.5) + 14
