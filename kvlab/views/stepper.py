"""The widget around a figure: First, Back, Next and Last, a slider, and one line that tells the step.

Every handler computes the step from the value that it is given, so merged or late messages end in the right
picture. Buttons are never disabled: a disabled button loses the keyboard's focus.
"""

from typing import Any

import ipywidgets

from kvlab.views.picture import Picture
from kvlab.views.text import escape

_BUTTONS = (
    ("First", "to the first step"),
    ("Back", "one step back"),
    ("Next", "one step on"),
    ("Last", "to the last step"),
)


class Stepper(Picture):
    """Base of all stepped figures. A figure gives `num_steps`, `draw` and `tell`.

    Hooks for tests and styles: classes kvlab-stepper, kvlab-first, kvlab-back, kvlab-next, kvlab-last,
    kvlab-slider, kvlab-picture and kvlab-telling; `data-step` in the SVG.
    """

    def __init__(
        self,
        num_steps: int,
        *,
        step: int = 0,
        first: int = 0,
        slider_name: str = "step",
        extra: tuple[ipywidgets.Widget, ...] = (),
    ):
        self._first = first
        self._last = first + max(0, num_steps - 1)
        self._step = min(max(step, first), self._last)
        self._note = ""
        self.telling = ipywidgets.HTML()
        self.buttons = [
            ipywidgets.Button(description=name, tooltip=f"{name}: {tip}") for name, tip in _BUTTONS
        ]
        self.slider = ipywidgets.IntSlider(
            self._step, first, self._last, readout=False, description=slider_name
        )
        self._style()
        super().__init__((ipywidgets.HBox([*self.buttons, self.slider]), *extra, self.telling))
        self.add_class("kvlab-stepper")
        for button, move in zip(
            self.buttons, (self._to_first, self._back, self._next, self._to_last), strict=True
        ):
            button.on_click(move)
        self.slider.observe(self._slid, "value")
        self.redraw()

    def _style(self) -> None:
        for button in self.buttons:
            button.layout.width = "72px"
            button.add_class(f"kvlab-{button.description.lower()}")
        self.slider.layout.width = "260px"
        self.slider.style.description_width = "initial"
        self.slider.add_class("kvlab-slider")
        self.telling.add_class("kvlab-telling")

    # -- what a figure provides ---------------------------------------------------------------------------

    def draw(self, step: int, *, uid: str | None = None, standalone: bool = False) -> str:
        """The SVG of a step."""
        raise NotImplementedError

    def tell(self, step: int) -> str:
        """The step in one line of plain text."""
        raise NotImplementedError

    # -- stepping -----------------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """The step that is shown."""
        return self._step

    def go(self, step: int) -> None:
        """Show a step. Past either end the picture stays at that end and the line below says so."""
        wanted = int(step)
        step = min(max(wanted, self._first), self._last)
        self._note = ""
        if wanted > self._last:
            self._note = "This is the last step."
        elif wanted < self._first:
            self._note = "This is the first step."
        self._step = step
        self.slider.value = step
        self.redraw()

    def _to_first(self, _button: Any) -> None:
        self.go(self._first)

    def _to_last(self, _button: Any) -> None:
        self.go(self._last)

    def _back(self, _button: Any) -> None:
        self.go(self._step - 1)

    def _next(self, _button: Any) -> None:
        self.go(self._step + 1)

    def _slid(self, change: Any) -> None:
        if change["new"] != self._step:
            self.go(change["new"])

    def redraw(self) -> None:
        """Build the picture and the line of the current step and show them."""
        line = f"{escape(self.tell(self._step))} {escape(self._note)}".strip()
        self.picture.value = self.svg(uid=self._uid)
        self.telling.value = f'<div style="font-weight:600;line-height:1.5">{line}</div>'

    # -- as a picture -------------------------------------------------------------------------------------

    def svg(self, *, uid: str | None = None, standalone: bool = False) -> str:
        """The SVG of the current step."""
        return self.draw(self._step, uid=uid, standalone=standalone)

    def words(self) -> str:
        """The current step in one line of plain text."""
        return self.tell(self._step)
