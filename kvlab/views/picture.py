"""The widget that every figure is: a picture to redraw, its theme, and a copy for pages without a kernel."""

from itertools import count
from typing import Any

import ipywidgets

from kvlab.views.theme import CSS

_numbers = count(1)


class Picture(ipywidgets.VBox):
    """Base of all figures: a box with the picture, then `below`. A figure gives `svg` and `words`.

    The theme is put on the page once, beside the picture, so that a redraw does not restyle the page.
    """

    def __init__(self, below: tuple[ipywidgets.Widget, ...] = ()):
        self._uid = f"kvlab{next(_numbers)}"
        self.picture = ipywidgets.HTML()
        self.picture.add_class("kvlab-picture")
        theme = ipywidgets.HTML(f"<style>{CSS}</style>", layout={"display": "none"})
        super().__init__([self.picture, *below, theme])

    def svg(self, *, uid: str | None = None, standalone: bool = False) -> str:
        """The picture as it is now."""
        raise NotImplementedError

    def words(self) -> str:
        """The picture as it is now, in one line of plain text."""
        raise NotImplementedError

    def static(self) -> str:
        """The picture as a bare SVG that carries its own theme, for pages without a kernel."""
        return self.svg(standalone=True)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle = super()._repr_mimebundle_(**kwargs) or {}
        return {**bundle, "image/svg+xml": self.static(), "text/plain": self.words()}
