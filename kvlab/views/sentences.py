"""Sentences under a figure."""

from kvlab.views.pool_layout import MARGIN
from kvlab.views.svg import Canvas
from kvlab.views.text import wrap_text

_SIZE, _LINE = 12.5, 19


def draw_sentence(canvas: Canvas, sentence: str, fill: str, weight: int) -> None:
    """Add a sentence under the figure, in as many lines as it takes; the canvas grows."""
    for line in wrap_text(sentence, canvas.width - 2 * MARGIN, _SIZE, weight):
        canvas.height += _LINE
        canvas.text(MARGIN, canvas.height - 8, line, _SIZE, fill=fill, weight=weight)
    canvas.height += 4
