"""The charts of notebook 11: blocks held by layers with and without a window, and what float8 rounds."""

from __future__ import annotations

from collections.abc import Sequence

from kvlab.views import Chart


def held_chart(lengths: Sequence[int], held: Sequence[Sequence[int]], names: Sequence[str]) -> Chart:
    """Blocks that each group holds as a request grows. held: one row a length, one number a group."""
    chart = Chart(f"Blocks held by {' and '.join(names)} as a request grows to {lengths[-1]} tokens.")
    for group, (name, style) in enumerate(zip(names, ("-", "--", "-."), strict=False)):
        chart.axes.step(lengths, [row[group] for row in held], style, where="post", label=name, linewidth=1.8)
    chart.axes.set(
        xlabel="tokens of the request", ylabel="blocks held", xlim=(0, lengths[-1]), ylim=(0, None)
    )
    chart.axes.legend()
    return chart


def grid_chart(values: Sequence[float], rounded: Sequence[float]) -> Chart:
    """How far float8 rounds each value, relative to it."""
    chart = Chart("Relative rounding error of float8_e4m3fn by size of the number.")
    error = [100 * abs(r - v) / v for v, r in zip(values, rounded, strict=True)]
    chart.axes.semilogx(values, error, linewidth=1.0)
    chart.axes.axhline(100 / 16, color=chart.ink, linewidth=0.8, linestyle="--")
    chart.axes.set(xlabel="number", ylabel="error, %", ylim=(0, 10))
    chart.axes.annotate("1/16", (values[-1], 100 / 16), textcoords="offset points", xytext=(-30, 4))
    return chart
