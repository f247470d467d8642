"""The online softmax, block by block: the widget."""

from collections.abc import Sequence
from typing import Any

from kvlab.views.softmax_drawing import draw_softmax
from kvlab.views.softmax_steps import tell_softmax
from kvlab.views.stepper import Stepper


class OnlineSoftmax(Stepper):
    """Shows how attention visits one block after another: scores, running maximum, sum and output.

    Args:
        trace: what `kvlab.online_softmax_trace` returned, one entry a block. Step 0 is before the first.
        step: the step to show first.
    """

    def __init__(self, trace: Sequence[Any], *, step: int = 0):
        self._trace = list(trace)
        super().__init__(len(self._trace) + 1, step=step, slider_name="block")

    def draw(self, step: int, *, uid: str | None = None, standalone: bool = False) -> str:
        """The SVG of a step."""
        return draw_softmax(self._trace, step, uid=uid, standalone=standalone)

    def tell(self, step: int) -> str:
        """The step in one line."""
        return tell_softmax(self._trace, step)
