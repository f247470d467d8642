"""Charts of measurements and sweeps, drawn once by matplotlib in the colours of the page around them."""

import re
from html import escape
from io import StringIO

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text

from kvlab.views.palette import FILLS
from kvlab.views.theme import CSS, INK, LINE

# Colours that matplotlib understands; each becomes a theme variable in the SVG.
_INK, _LINE = "#010203", "#040506"
_STYLE = {
    "axes.edgecolor": _INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": _INK,
    "axes.prop_cycle": f"cycler('color', {list(FILLS)})",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "grid.color": _LINE,
    "grid.linewidth": 0.6,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "kvlab",
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}


class Chart:
    """One matplotlib figure with one set of axes; as the last line of a cell it shows itself.

    Text, axes and grid take the page's theme, light or dark; data comes in the figures' own palette, or in
    `chart.ink`, the colour of the text.

    Args:
        alt: one sentence that says what the chart shows, for those who cannot see it.
        figsize: width and height in inches.

    Example: chart = Chart("Waste by block size"); chart.axes.plot([1, 2], [3, 4]); chart
    """

    ink = _INK

    def __init__(self, alt: str, figsize: tuple[float, float] = (7.2, 3.0)):
        self.alt = alt
        with rc_context(_STYLE):
            self.figure = Figure(figsize=figsize, layout="constrained")
            self.axes = self.figure.subplots()

    def static(self) -> str:
        """The bare SVG with its own theme."""
        # What was added outside the style's context has matplotlib's own colours still.
        for text in self.figure.findobj(Text):
            if text.get_color() in ("black", "k"):
                text.set_color(_INK)
        for legend in self.figure.findobj(Legend):
            legend.set_frame_on(False)
        written = StringIO()
        with rc_context(_STYLE):
            self.figure.savefig(written, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format")))
        svg = written.getvalue()
        svg = svg[svg.index("<svg") :].replace(_INK, INK).replace(_LINE, LINE)
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
        name = escape(self.alt)
        opening = f'<svg class="kvfig" role="img" style="max-width:100%;height:auto" aria-label="{name}"'
        style = f"<title>{name}</title><style>{CSS}</style>"
        return re.sub(r"<svg\b([^>]*)>", lambda match: f"{opening}{match[1]}>{style}", svg, count=1)

    def _repr_html_(self) -> str:
        return self.static()

    def __repr__(self) -> str:
        return f"Chart: {self.alt}"
