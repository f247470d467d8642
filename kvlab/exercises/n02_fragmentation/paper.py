"""The PagedAttention paper's figure 2: its values, and our simulation of the same four allocators.

Source of the values: Kwon et al., arXiv:2309.06180, figure 2 (OPT-13B on a 40 GB card, ShareGPT). Ours:
12 GiB of KV (15,728 slots), the assumed lengths that `kvlab.workloads` names, all waiting from the start.
"""

from __future__ import annotations

from kvlab.contiguous import Oracle, PowerOfTwo, ReserveMax
from kvlab.paged_allocator import PagedAllocator
from kvlab.simulation import Result, run
from kvlab.views import Chart
from kvlab.views.palette import FILLS
from kvlab.workloads import workload

SLOTS, MAX_LEN = 15_728, 2_048
PARTS = ("tokens", "reserved", "internal", "external")
FIGURE_2: dict[str, tuple[float | None, ...]] = {
    "reserve max": (20.4, 13.3, 57.3, 8.9),
    "power of two": (26.8, 17.9, 13.6, 41.6),
    "oracle": (38.2, 25.2, 0.0, 36.6),
    "paged": (96.3, None, None, None),
}
"""Percent of the KV memory. For paged the paper gives only the share of tokens."""


def simulate(count: int = 1500, seed: int = 0) -> list[Result]:
    """The four allocators on the same `count` ShareGPT-like requests."""
    requests = workload("sharegpt", count, seed=seed, max_len=MAX_LEN)
    allocators = (
        ReserveMax(SLOTS, MAX_LEN),
        PowerOfTwo(SLOTS, MAX_LEN),
        Oracle(SLOTS, MAX_LEN),
        PagedAllocator(SLOTS, block_size=16),
    )
    return [run(requests, allocator) for allocator in allocators]


def percents(result: Result) -> list[float]:
    """The four parts of a run in percent of all slots."""
    return [100 * getattr(result, part) for part in PARTS]


def bars(results: list[Result]) -> Chart:
    """For each allocator two bars: the paper's on top, ours below."""
    told = "; ".join(f"{r.allocator}: {percents(r)[0]:.1f} % tokens" for r in results)
    chart = Chart(f"What the KV memory holds. Ours: {told}.", figsize=(7.2, 3.6))
    looks = ((FILLS[0], ""), (FILLS[4], "///"), (FILLS[1], "..."), ("none", ""))
    labels, places = [], []
    for number, result in enumerate(results):
        rows = (("paper", FIGURE_2[result.allocator]), ("ours", percents(result)))
        for place, (whose, values) in enumerate(rows, start=3 * number):
            labels.append(f"{result.allocator}, {whose}" if whose == "paper" else whose)
            places.append(place)
            left = 0.0
            for value, (fill, hatch) in zip(values, looks, strict=True):
                look = {"color": fill, "hatch": hatch, "edgecolor": chart.ink, "linewidth": 0.6}
                chart.axes.barh(place, value or 0.0, left=left, **look)
                left += value or 0.0
    for name, (fill, hatch) in zip(PARTS, looks, strict=True):
        chart.axes.barh(0, 0, color=fill, hatch=hatch, edgecolor=chart.ink, label=name)
    chart.axes.set(yticks=places, yticklabels=labels, xlabel="% of the KV memory", xlim=(0, 100))
    chart.axes.invert_yaxis()
    chart.axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)
    chart.axes.grid(visible=False, axis="y")
    return chart


def waste_curves(waste, sizes=(8, 16, 32, 64), longest: int = 512) -> Chart:
    """The share of held slots that `waste(length, block_size)` leaves empty, by length."""
    chart = Chart(f"Share of empty slots by length, for blocks of {', '.join(map(str, sizes))}.")
    lengths = list(range(1, longest + 1))
    for size, style in zip(sizes, ("-", "--", "-.", ":"), strict=True):
        empty = [waste(length, size) for length in lengths]
        share = [100 * e / (n + e) for n, e in zip(lengths, empty, strict=True)]
        chart.axes.plot(lengths, share, style, label=f"B = {size}", linewidth=1.2)
    chart.axes.set(xlabel="tokens", ylabel="% of held slots empty", xlim=(0, longest), ylim=(0, 60))
    chart.axes.legend(ncols=4)
    return chart
