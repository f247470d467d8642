"""What notebook 10 measures on the machine that it runs on: a GPU where there is one, else one CPU thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import torch

from kvlab.bandwidth import READ
from kvlab.contenders import CONTIGUOUS, PAGED, Buffers, line_up
from kvlab.roofline import Roofline
from kvlab.timing import measure
from kvlab.timing_sweeps import Point, measure_point, run_points, sweep_points
from kvlab.traffic import DecodeShape

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
# With one thread, processor time is what a quiet machine would take, whatever else runs. Windows counts it in
# steps that are too coarse.
CLOCK = "wall" if GPU or os.name == "nt" else "cpu"
BASE = DecodeShape(64, 8192, dtype="bfloat16") if GPU else DecodeShape(2, 1024)
DTYPES = ("bfloat16", "float16", "float8_e4m3fn") if GPU else ("float32", "bfloat16", "float16")
# What a notebook has time for; `python -m kvlab bench` takes all.
CHOSEN = {"block size": (1, 4, 16, 64, 256), "splits": (1, 4, 16), "KV heads": (16, 8, 4, 1)}
OPTIONS = {"device": DEVICE, "clock": CLOCK, "rounds": 5}


def where() -> str:
    """One sentence: what is measured here, and by which clock."""
    if GPU:
        return f"Measured on {torch.cuda.get_device_name()}, by events on the device."
    clock = "processor time" if CLOCK == "cpu" else "the time that passes"
    return (
        f"Not measured on a GPU yet: there is none here. What follows is one thread of this CPU, by {clock}, "
        "in float32."
    )


def points(*sweeps: str) -> list[Point]:
    """The points of these sweeps that a notebook has time for."""
    found = sweep_points(BASE, DTYPES, sweeps)
    return [point for point in found if point.value in CHOSEN.get(point.sweep, (point.value,))]


def sweep(name: str) -> list[dict]:
    """Measure one sweep, here and now, and print a line for each point."""
    rows = []
    print("time of a step, and in brackets its share of a plain read's speed")
    for _, row in run_points(points(name), **OPTIONS):
        rows.append(row)
        print(line(row))
    return rows


def side_by_side() -> dict:
    """Measure all contenders at the base shape."""
    return measure_point(Point("contenders", "all", BASE), **OPTIONS)


def take_times(rounds: int = 9) -> tuple[list[float], list[float]]:
    """Seconds of a plain read and of our path, in turns, the first call of each included."""
    field = line_up(Buffers(BASE, DEVICE))
    ours = next(name for name in field.runs if name.startswith(PAGED))
    runs = {name: field.runs[name] for name in (READ, ours)}
    times = measure(runs, rounds=rounds, device=DEVICE, clock=CLOCK)
    return tuple([timed.first, *timed.rounds] for timed in times.values())


def line(row: dict) -> str:
    """A row in one line: our path and the contiguous one, in milliseconds and as shares of the read."""
    figures = [
        f"{name.split(' SDPA')[0]} {1e3 * own['seconds'][0]:.2f} ms ({own['share'][0]:.2f})"
        for name, own in row["contenders"].items()
        if name.startswith((PAGED, CONTIGUOUS))
    ]
    return f"{row['sweep']} {row['value']!s:>5} {row['must_move'] / 1e6:6.1f} MB  {'  '.join(figures)}"


def live(*sweeps: str) -> dict:
    """The arguments of `TimingExplorer` for a live run of these sweeps."""
    chosen = points(*sweeps)

    def run(stop: Callable[[], bool]) -> Iterator[dict]:
        return (row for _, row in run_points(chosen, stop=stop, **OPTIONS))

    return {"total": len(chosen), "run": run}


def told(roofline: Roofline) -> str:
    """A roofline in one sentence."""
    return (
        f"this machine reads {roofline.bytes_per_s / 1e9:.1f} GB/s and does "
        f"{roofline.operations_per_s / 1e9:.0f} billion operations a second: the ridge is at "
        f"{roofline.ridge:.1f} operations a byte"
    )
