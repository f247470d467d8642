"""Charts: themed, named, and without matplotlib's own black and white."""

import re
from xml.etree import ElementTree

from kvlab.views import Chart
from kvlab.views.palette import FILLS


def drawn() -> str:
    chart = Chart('Waste & "use" <by size>')
    chart.axes.plot([1, 2, 3], [3, 1, 2], "o-", label="one")
    chart.axes.plot([1, 2, 3], [1, 2, 2], "_", color=chart.ink, label="two")
    chart.axes.set(xlabel="blocks", ylabel="waste", title="Title")
    chart.axes.annotate("here", (1, 2))
    chart.axes.legend()
    return chart._repr_html_()


def test_a_chart_is_svg_with_a_name():
    root = ElementTree.fromstring(drawn())
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'Waste & "use" <by size>'
    assert "one" in "".join(root.itertext())


def test_text_axes_and_grid_take_the_theme_and_data_the_palette():
    svg = drawn()
    body = svg[svg.index("</style>") :]
    assert set(re.findall(r"#[0-9a-fA-F]{3,6}\b(?=[;\"'])", body)) <= {FILLS[0]}
    assert "black" not in body
    assert body.count("var(--kv-ink)") > 10
    assert "var(--kv-line)" in body
    assert "prefers-color-scheme:dark" in svg


def test_the_same_chart_is_the_same_text():
    assert drawn() == drawn()
