"""The chart of notebook 01: where a card's memory goes."""

from __future__ import annotations

from kvlab.views import Chart
from kvlab.views.palette import FILLS


def memory_bar(weights: float, kv: float, budget: float, total: float) -> Chart:
    """A card's memory as one bar: weights, KV, the rest of the budget, and what the engine leaves alone.

    All in GiB. The budget is utilisation times total.
    """
    parts = [
        ("weights", weights, FILLS[0], ""),
        ("KV cache", kv, FILLS[2], "..."),
        ("activations and the engine", budget - weights - kv, FILLS[1], "///"),
        ("not used", total - budget, "none", ""),
    ]
    told = ", ".join(f"{name} {size:.2f} GiB" for name, size, *_ in parts)
    chart = Chart(f"{total:.2f} GiB of GPU memory: {told}.", figsize=(7.2, 1.7))
    left = 0.0
    for name, size, fill, hatch in parts:
        label = f"{name} {size:.2f}"
        chart.axes.barh(0, size, left=left, color=fill, hatch=hatch, edgecolor=chart.ink, label=label)
        left += size
    chart.axes.set(yticks=[], xlabel="GiB", xlim=(0, total))
    chart.axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)
    chart.axes.grid(visible=False)
    return chart
