"""Charts of measured rows (kvlab.timing_sweeps): contenders side by side, a sweep, the roofline."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from matplotlib.ticker import LogLocator

from kvlab.roofline import Roofline
from kvlab.traffic import DecodeShape
from kvlab.views.charts import Chart
from kvlab.views.palette import FILLS

MARKERS = "osD^vPX"
# One colour and one marker for a contender in every chart; what is not named here takes the next.
ORDER = ("paged", "contiguous SDPA", "gather, then SDPA", "torch.cat, then SDPA", "FlexAttention")
MEASURES = ("share of the read", "milliseconds", "GB/s")


def contender_chart(row: dict) -> Chart:
    """Milliseconds of each contender as bars, with the quartiles, and a line at the time of a plain read."""
    figures = sorted(row["contenders"].items(), key=lambda item: item[1]["seconds"][0])
    read = 1e3 * row["must_move"] / row["read_bytes_per_s"][0]
    told = ", ".join(f"{name} {1e3 * one['seconds'][0]:.2f} ms" for name, one in figures)
    chart = Chart(f"Time of one step. A plain read {read:.2f} ms, {told}.", (7.2, 0.7 + 0.42 * len(figures)))
    for place, (name, one) in enumerate(figures):
        middle, low, high = (1e3 * second for second in one["seconds"])
        error = [[max(0, middle - low)], [max(0, high - middle)]]
        chart.axes.barh(place, middle, color=_paint(name), xerr=error, ecolor=chart.ink, height=0.62)
        chart.axes.annotate(
            f"{middle:.2f} ms", (high, place), (5, 0), textcoords="offset points", va="center"
        )
    chart.axes.axvline(read, color=chart.ink, linestyle="--", linewidth=1)
    chart.axes.set_yticks(range(len(figures)), [name for name, _ in figures])
    chart.axes.invert_yaxis()
    chart.axes.margins(x=0.14)
    chart.axes.set_xlabel("milliseconds; dashed: a plain read of the same bytes")
    return chart


def sweep_chart(rows: Sequence[dict], measure: str = MEASURES[0]) -> Chart:
    """One measure of every contender over what the sweep changes, with the quartiles as thin bars."""
    if measure not in MEASURES:
        raise ValueError(f"measure must be one of {', '.join(MEASURES)}, not {measure!r}.")
    sweep = rows[0]["sweep"] if rows else "nothing yet"
    values = [row["value"] for row in rows]
    names = dict.fromkeys(name for row in rows for name in row["contenders"])
    chart = Chart(f"{measure} by {sweep}: {', '.join(map(str, values))}. {_told(rows, measure)}")
    for name in names:
        seen = [(place, row) for place, row in enumerate(rows) if name in row["contenders"]]
        spreads = [_measured(row, name, measure) for _, row in seen]
        places = [place for place, _ in seen]
        middles = [middle for middle, _, _ in spreads]
        error = [[max(0, m - low) for m, low, _ in spreads], [max(0, high - m) for m, _, high in spreads]]
        chart.axes.errorbar(
            places, middles, error, marker=_marker(name), color=_paint(name), label=name, elinewidth=0.8
        )
    chart.axes.set_xticks(range(len(values)), [str(value) for value in values])
    chart.axes.set(xlabel=sweep, ylabel=measure)
    chart.axes.set_ylim(bottom=0)
    if names:
        chart.axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return chart


def roofline_chart(roofline: Roofline, rows: Sequence[dict], name: str = "paged") -> Chart:
    """The machine's roof and, below it, what one contender reached in each row.

    name: how the contender's name begins.
    """
    dots = []
    for row in rows:
        shape = DecodeShape(**row["shape"])
        own = next((one for key, one in row["contenders"].items() if key.startswith(name)), None)
        if own:
            dots.append((shape.intensity, shape.operations / own["seconds"][0] / 1e9, row["value"]))
    chart = Chart(
        f"Roofline: {roofline.bytes_per_s / 1e9:.1f} GB/s, {roofline.operations_per_s / 1e9:.0f} billion "
        f"operations a second, ridge at {roofline.ridge:.1f} operations a byte; below it {len(dots)} steps."
    )
    ends = [dot[0] for dot in dots] + [roofline.ridge]
    places = [min(ends) / 4, roofline.ridge, max(ends) * 4]
    roof = [roofline.attainable(place) / 1e9 for place in places]
    chart.axes.loglog(places, roof, color=chart.ink, linewidth=1.4)
    chart.axes.axvline(roofline.ridge, color=chart.ink, linestyle="--", linewidth=0.8)
    labelled: list[tuple[float, float]] = []
    for place, reached, value in dots:
        chart.axes.loglog(place, reached, marker="o", color=FILLS[0])
        if all(_apart(place, reached, *other) for other in labelled):
            chart.axes.annotate(str(value), (place, reached), (6, -3), textcoords="offset points")
            labelled.append((place, reached))
    for axis in (chart.axes.xaxis, chart.axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
    chart.axes.minorticks_off()
    chart.axes.set(xlabel="operations a byte that must move", ylabel="billion operations a second")
    return chart


def _apart(place: float, reached: float, other_place: float, other_reached: float) -> bool:
    """Whether two dots are far enough apart, on logarithmic axes, for a label each."""
    return abs(log(place / other_place)) > 0.3 or abs(log(reached / other_reached)) > 0.25


def _measured(row: dict, name: str, measure: str) -> tuple[float, float, float]:
    own = row["contenders"][name]
    if measure == MEASURES[0]:
        return tuple(own["share"])
    if measure == MEASURES[1]:
        return tuple(1e3 * second for second in own["seconds"])
    middle, low, high = (row["must_move"] / 1e9 / second for second in own["seconds"])
    return middle, high, low  # the slowest time is the lowest speed


def _told(rows: Sequence[dict], measure: str) -> str:
    """The middle figures in words, for those who cannot see the chart."""
    lines = []
    for name in dict.fromkeys(name for row in rows for name in row["contenders"]):
        figures = [f"{_measured(row, name, measure)[0]:.2f}" for row in rows if name in row["contenders"]]
        lines.append(f"{name}: {', '.join(figures)}")
    return "; ".join(lines)


def _place(name: str) -> int:
    return next((place for place, begin in enumerate(ORDER) if name.startswith(begin)), len(ORDER))


def _paint(name: str) -> str:
    return FILLS[_place(name)]


def _marker(name: str) -> str:
    return MARKERS[_place(name)]
