"""Charts of made-up rows: what is drawn, what is said to those who cannot see it, one colour a contender."""

import pytest

from kvlab.roofline import Roofline
from kvlab.traffic import DecodeShape
from kvlab.views.palette import FILLS
from kvlab.views.timing_charts import MEASURES, contender_chart, roofline_chart, sweep_chart

from .reading import parse


def row(sweep, value, **contenders):
    """A row in which each contender takes the given milliseconds, and the read 2 ms."""
    shape = DecodeShape(2, 1024)
    figures = {
        name.replace("_", " "): {
            "first_s": 1.0,
            "seconds": [ms / 1e3, 0.9 * ms / 1e3, 1.2 * ms / 1e3],
            "share": [2 / ms, 1.8 / ms, 2.2 / ms],
        }
        for name, ms in contenders.items()
    }
    return {
        "sweep": sweep,
        "value": value,
        "shape": shape._asdict(),
        "must_move": shape.must_move,
        "read_bytes_per_s": [shape.must_move / 2e-3] * 3,
        "contenders": figures,
    }


ROWS = [row("batch", n, paged=4 * n, contiguous_SDPA=5 * n) for n in (1, 2, 4)]


def test_contenders_from_fast_to_slow_beside_the_read():
    chart = contender_chart(row("batch", 1, gather=40, paged=4))
    assert chart.alt == "Time of one step. A plain read 2.00 ms, paged 4.00 ms, gather 40.00 ms."
    words = "".join(parse(chart.static()).itertext())
    assert "4.00 ms" in words and "40.00 ms" in words and "dashed: a plain read" in words


@pytest.mark.parametrize(
    ("measure", "figures"),
    list(zip(MEASURES, ["0.50, 0.25, 0.12", "4.00, 8.00, 16.00", "4.21, 2.11, 1.05"], strict=True)),
)
def test_a_sweep_in_three_measures(measure, figures):
    chart = sweep_chart(ROWS, measure)
    assert chart.alt.startswith(f"{measure} by batch: 1, 2, 4. paged: {figures}; contiguous SDPA:")
    assert chart.axes.get_ylim()[0] == 0
    assert [text.get_text() for text in chart.axes.get_xticklabels()] == ["1", "2", "4"]


def test_a_contender_keeps_its_colour_whoever_is_beside_it():
    both, one = sweep_chart(ROWS), sweep_chart([row("batch", 1, contiguous_SDPA=5)])
    assert FILLS[1] in both.static() and FILLS[1] in one.static()
    assert FILLS[0] in both.static() and FILLS[0] not in one.static()


def test_a_contender_that_is_missing_in_a_row_has_no_point_there():
    rows = [row("block size", 16, paged=4), row("block size", 128, paged=4, FlexAttention=6)]
    assert "FlexAttention: 6.00" in sweep_chart(rows, "milliseconds").alt


def test_no_rows_yet_is_a_chart_too():
    assert "nothing yet" in sweep_chart([]).alt
    parse(sweep_chart([]).static())


def test_an_unknown_measure_gets_a_sentence():
    with pytest.raises(ValueError, match="measure must be one of share of the read"):
        sweep_chart(ROWS, "speed")


def test_the_roofline_names_its_ridge_and_its_dots():
    chart = roofline_chart(Roofline(10e9, 80e9), ROWS)
    assert "10.0 GB/s, 80 billion operations a second, ridge at 8.0" in chart.alt
    assert "3 steps" in chart.alt
    roof, ridge, *dots = chart.axes.lines
    assert list(ridge.get_xdata()) == [8, 8]
    assert list(roof.get_ydata())[1:] == [80, 80] and len(dots) == 3
    shape = DecodeShape(2, 1024)
    assert dots[0].get_xdata()[0] == shape.intensity
    assert dots[0].get_ydata()[0] == pytest.approx(shape.operations / 4e-3 / 1e9)


def test_dots_that_lie_together_share_a_label():
    rows = [row("batch", 1, paged=4), row("batch", 2, paged=4.1), row("batch", 4, paged=16)]
    chart = roofline_chart(Roofline(10e9, 80e9), rows)
    assert [text.get_text() for text in chart.axes.texts] == ["1", "4"]
