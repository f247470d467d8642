"""Sweeps of decode shapes, measured point by point into rows of JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from time import perf_counter
from typing import NamedTuple

import torch

import kvlab
from kvlab.bandwidth import COPY, READ
from kvlab.contenders import CONTIGUOUS, GATHER, GROW, LIMITS, Buffers, agree, line_up
from kvlab.flex_contender import add_flex
from kvlab.machine import machine
from kvlab.timing import Spread, Timed, measure, shares
from kvlab.traffic import DecodeShape, grow_bytes
from kvlab.triton_setup import CONFIGS

BLOCK_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SLOW = (GATHER, GROW)  # they move three times the bytes, and are in the sweeps where that is the question
FOR_ROUNDS = 0.5  # of a point's time: the rest goes to making its buffers and to the comparison
TILE = "tile"  # only the Triton kernel has one
SWEEPS = ("context", "batch", "block size", "KV heads", "dtype", "splits", "one long sequence")


class Point(NamedTuple):
    """One measurement: `value` is what the sweep changes. `without`: contenders that are not timed here.
    config: (tile, warps, stages) of the Triton kernel instead of its own choice."""

    sweep: str
    value: int | str
    shape: DecodeShape
    num_splits: int | None = None
    without: tuple[str, ...] = ()
    config: tuple[int, int, int] | None = None


def sweep_points(base: DecodeShape, dtypes: tuple[str, ...], names: Iterable[str] = SWEEPS) -> list[Point]:
    """The points of the named sweeps around a shape, in the order of `SWEEPS`, then `TILE`.

    Raises:
        ValueError: no such sweep.
    """
    names, known = tuple(names), (*SWEEPS, TILE)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"there is no sweep {unknown[0]!r}; there are: {', '.join(known)}.")
    seqs, context, heads = base.num_seqs, base.context, base.num_q_heads
    total = seqs * context
    contexts = [context * factor // 4 for factor in (1, 2, 4, 8)]
    batches = sorted({max(1, seqs * factor // 4) for factor in (1, 2, 4, 8)})
    kv_heads = [heads // group for group in (1, 2, 4, 8, 32) if heads % group == 0]
    found = [Point("context", n, base._replace(context=n)) for n in contexts]
    found += [Point("batch", n, base._replace(num_seqs=n)) for n in batches]
    found += [Point("block size", n, base._replace(block_size=n), without=SLOW) for n in BLOCK_SIZES]
    found += [Point("KV heads", n, base._replace(num_kv_heads=n), without=SLOW) for n in kv_heads]
    found += [Point("dtype", name, base._replace(dtype=name), without=SLOW) for name in dtypes]
    one = base._replace(num_seqs=1, context=total)
    splits = (1, 2, 4, 8, 16, 32)
    found += [Point("splits", n, one, n, without=(*SLOW, CONTIGUOUS)) for n in splits]
    long = [base._replace(num_seqs=1, context=total * factor) for factor in (1, 4)]
    found += [Point("one long sequence", shape.context, shape) for shape in long]
    for name in dtypes:
        shape = base._replace(dtype=name)
        found += [
            Point(TILE, f"{name} {'/'.join(map(str, config))}", shape, without=SLOW, config=config)
            for config in CONFIGS
        ]
    return [point for point in found if point.sweep in names]


def measure_point(
    point: Point,
    *,
    device: torch.device | str = "cpu",
    rounds: int = 10,
    seconds: float | None = None,
    clock: str = "wall",
    seed: int = 0,
    backends: tuple[str, ...] | None = None,
    flex: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> dict:
    """One row. Every contender's result is compared with the others' before the row is given.

    flex: try FlexAttention, which compiles for some seconds. Otherwise it is left out, and that is said.
    """
    buffers = Buffers(point.shape, device, seed)
    field = line_up(buffers, num_splits=point.num_splits, backends=backends, config=point.config)
    add_flex(field, buffers, wanted=flex)
    runs = {name: run for name, run in field.runs.items() if name not in point.without}
    times = measure(runs, rounds=rounds, seconds=seconds, device=device, clock=clock, stop=stop)
    agree(field._replace(runs=runs))
    return as_row(point, times, field.left_out)


def as_row(point: Point, times: dict[str, Timed], left_out: dict[str, str]) -> dict:
    """A measured point as JSON: the shape, its bytes and operations, the limits, and every contender."""
    shape = point.shape
    read = times[READ]
    contenders = {name: _figures(shape, read, own) for name, own in times.items() if name not in LIMITS}
    if GROW in contenders:
        copied, peak = grow_bytes(shape)
        contenders[GROW] |= {"bytes_copied": copied, "peak_bytes": peak}
    return {
        "sweep": point.sweep,
        "value": point.value,
        "shape": shape._asdict(),
        "num_splits": point.num_splits,
        "config": point.config,
        "must_move": shape.must_move,
        "operations": shape.operations,
        "rounds": len(read.rounds),
        "read_bytes_per_s": list(Spread.of(shape.kv_bytes / time for time in read.rounds)),
        "copy_bytes_per_s": list(Spread.of(2 * shape.kv_bytes / time for time in times[COPY].rounds)),
        "contenders": contenders,
        "left_out": left_out,
    }


def _figures(shape: DecodeShape, read: Timed, own: Timed) -> dict:
    """first_s: the first call. seconds, share: median and quartiles. share is of the read's speed, for the
    bytes that must move."""
    least = shape.must_move / shape.kv_bytes  # the read has no tables and no queries
    return {
        "first_s": own.first,
        "seconds": list(Spread.of(own.rounds)),
        "share": [least * figure for figure in shares(read, own)],
    }


def run_points(
    points: list[Point], *, budget: float | None = None, rounds: int = 10, stop=lambda: False, **options
) -> Iterator[tuple[int, dict]]:
    """(number of the point, its row), as they come; ends early when `stop()` is true or the budget, in
    seconds, is used up. What is left of the budget is shared equally by the points still to come."""
    begin = perf_counter()
    for number, point in enumerate(points):
        left = None if budget is None else budget - (perf_counter() - begin)
        if stop() or (left is not None and left <= 0):
            return
        seconds = None if left is None else left / (len(points) - number) * FOR_ROUNDS
        yield number, measure_point(point, rounds=rounds, seconds=seconds, stop=stop, **options)


def document(rows: list[dict], *, device: torch.device | str, clock: str, seed: int, **more) -> dict:
    """The rows with all that a reader needs to judge them."""
    return {
        "kvlab": kvlab.__version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(device),
        "clock": "device events" if torch.device(device).type == "cuda" else clock,
        "seed": seed,
        **more,
        "rows": rows,
    }
