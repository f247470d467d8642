import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.views.paths import arrow_head, num, rect, route
from kvlab.views.svg import Canvas
from kvlab.views.text import clip_text, escape, text_width, wrap_text

from .reading import SVG, count_elements, labels, parse, words


def test_equal_looks_become_one_element():
    canvas = Canvas(100, 50)
    for i in range(40):
        canvas.path(rect(i, 0, 1, 1), fill="#0072b2")
        canvas.digits(i * 20, 10, i)
    assert count_elements(canvas.svg("t")) == 5  # svg, title, g, path, text


def test_layers_decide_what_lies_on_top():
    canvas = Canvas(10, 10)
    canvas.path("M0 0h1", 3, fill="top")
    canvas.path("M0 0h1", 1, fill="bottom")
    assert [node.get("fill") for node in parse(canvas.svg("t")).iter(f"{SVG}path")] == ["bottom", "top"]


def test_numbers_keep_their_place_when_merged():
    canvas = Canvas(300, 50)
    for x, value in ((20, 7), (80, 128), (200, 64)):
        canvas.digits(x, 30, value)
    assert labels(canvas.svg("t")) == {(20, 30): "7", (80, 30): "128", (200, 30): "64"}


@given(st.text())
def test_any_text_stays_text(text):
    canvas = Canvas(100, 50)
    canvas.text(0, 10, text)
    canvas.digits(0, 20, text)
    svg = canvas.svg(text)
    assert parse(svg).find(f"{SVG}title").text in (None, parse(f"<t>{escape(text)}</t>").text)
    assert "<script" not in svg


def test_markup_in_a_name_is_shown_not_run():
    canvas = Canvas(100, 50)
    canvas.text(0, 10, '<script>alert("A&B")</script>')
    assert words(canvas.svg("t")) == ['<script>alert("A&B")</script>']


def test_ids_do_not_clash_and_do_not_change():
    def figure(colour, uid=None):
        canvas = Canvas(10, 10)
        canvas.path(rect(0, 0, 5, 5), fill=canvas.hatch(colour))
        return canvas.svg("t", uid=uid)

    assert figure("#0072b2") == figure("#0072b2")
    ids = {figure(c).split('id="')[1].split('"')[0] for c in ("#0072b2", "#e69f00")}
    assert len(ids) == 2
    assert 'id="one-h' in figure("#0072b2", "one") and "url(#one-h" in figure("#0072b2", "one")


def test_svg_is_an_image_with_a_title_and_hidden_decoration():
    root = parse(Canvas(10, 10).svg("Block 3 is free.", step=4))
    assert root.get("role") == "img" and root.get("data-step") == "4"
    assert root.find(f"{SVG}title").text == "Block 3 is free."
    assert [node.get("aria-hidden") for node in root if node.tag == f"{SVG}g"] == ["true"]


def test_only_a_figure_that_stands_alone_carries_the_theme():
    canvas = Canvas(10, 10)
    assert "<style>" not in canvas.svg("t")
    assert "prefers-color-scheme" in canvas.svg("t", standalone=True)


@pytest.mark.parametrize(
    ("value", "text"), [(3, "3"), (3.04, "3"), (-0.04, "0"), (2.55, "2.5"), (1234.5, "1234.5")]
)
def test_coordinates_are_short(value, text):
    assert num(value) == text


def test_a_route_bends_round_its_corners_and_ends_where_it_should():
    data = route([(0, 0), (0, 20), (50, 20), (50, 20)])
    assert data.startswith("M0 0") and data.endswith("L50 20") and data.count("Q") == 1


def test_arrow_heads_point_where_they_say():
    tips = {d: arrow_head(10, 10, d) for d in ("down", "up", "left", "right")}
    assert len(set(tips.values())) == 4 and all(data.startswith("M10 10l") for data in tips.values())


def test_text_is_wrapped_and_clipped_to_its_width():
    lines = wrap_text("one two three four five six seven " + "x" * 200, 120, 12)
    assert len(lines) > 3 and all(text_width(line, 12) <= 120 for line in lines)
    assert clip_text("abc", 100, 12) == "abc"
    assert clip_text("a" * 100, 100, 12).endswith("…")
