"""Time functions side by side: in turns, warm-up apart, medians; device events on a GPU.

On a shared machine the speed changes from second to second, so contenders take turns within each round, and
what is compared is the ratio within a round, not two times from different minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time
from typing import NamedTuple

import torch

CACHE_UNKNOWN = 64 * 2**20  # bytes to assume for the last-level cache where the system does not tell
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
CLOCKS = {"wall": perf_counter, "cpu": process_time}
FEWEST = 3  # rounds, however little time is left: a median of fewer says nothing


class Timed(NamedTuple):
    """One contender's times in seconds: its first call, which may compile, and one for each round."""

    first: float
    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.rounds)


class Spread(NamedTuple):
    """The median of some figures and their quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, figures) -> Spread:
        figures = list(figures)
        low, _, high = quantiles(figures, n=4, method="inclusive") if len(figures) > 1 else figures * 3
        return cls(median(figures), low, high)


def measure(
    contenders: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 10,
    seconds: float | None = None,
    device: torch.device | str = "cpu",
    clock: str = "wall",
    stop: Callable[[], bool] = lambda: False,
) -> dict[str, Timed]:
    """Time every contender once a round, in turns.

    Args:
        contenders: name -> function without arguments. Each call should find its data outside the cache
            (`copies_needed`), whoever used it before.
        rounds: how many. seconds: start no further round after this long, but do at least three.
        device: where the work runs. On a GPU the time is that between two events on the device.
        clock: "wall", the time that passes; or, on a CPU, "cpu": the processor time of all threads, which
            leaves out what other programs took. With one thread the two agree on a quiet machine.
        stop: asked after every round; True ends the measurement there.

    Returns:
        name -> `Timed`. The first call of each, before all rounds, is apart.
    """
    if rounds < 1:
        raise ValueError(f"rounds must be at least 1, got {rounds}.")
    time_of = stopwatch(device, clock)
    first = {name: time_of(run) for name, run in contenders.items()}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    begin = perf_counter()
    for number in range(1, rounds + 1):
        for name, run in contenders.items():
            times[name].append(time_of(run))
        late = seconds is not None and perf_counter() - begin > seconds and number >= FEWEST
        if late or stop():
            break
    return {name: Timed(first[name], tuple(values)) for name, values in times.items()}


def shares(limit: Timed, own: Timed) -> Spread:
    """How much of the limit's speed a contender reaches, for the same bytes: round by round, then medians."""
    return Spread.of(fast / slow for fast, slow in zip(limit.rounds, own.rounds, strict=True))


def stopwatch(device: torch.device | str, clock: str = "wall") -> Callable[[Callable, int], float]:
    """A function that runs `run()` once and returns its seconds."""
    if clock not in CLOCKS:
        raise ValueError(f"clock must be one of {', '.join(CLOCKS)}, not {clock!r}.")
    if torch.device(device).type == "cuda":
        return _by_events(torch.device(device))
    now = CLOCKS[clock]

    def time_of(run: Callable[[], object]) -> float:
        begin = now()
        run()
        return now() - begin

    return time_of


def _by_events(device: torch.device) -> Callable[[Callable, int], float]:
    # Filling these bytes keeps the device busy while Python enqueues what is timed, so that the time between
    # the two events is the device's alone; it also empties the device's cache.
    filler = torch.empty(2**30, dtype=torch.uint8, device=device)

    def time_of(run: Callable[[], object]) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in "se")
        filler.zero_()
        start.record()
        run()
        end.record()
        torch.cuda.synchronize(device)
        return start.elapsed_time(end) / 1e3

    return time_of


def copies_needed(num_bytes: int, cache_bytes: int) -> int:
    """How many copies of some data to go through in turn, so that each use finds it outside the cache.

    Between two uses of a copy at least twice the cache passes by.
    """
    return 1 + -(-2 * cache_bytes // num_bytes) if num_bytes < 2 * cache_bytes else 1


def last_level_cache(device: torch.device | str = "cpu") -> int:
    """Bytes of the last cache before memory; `CACHE_UNKNOWN` where the system does not tell."""
    device = torch.device(device)
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).L2_cache_size or CACHE_UNKNOWN
    return _largest_cache(Path("/sys/devices/system/cpu/cpu0/cache")) or CACHE_UNKNOWN


def _largest_cache(folder: Path) -> int:
    sizes = [path.read_text().strip() for path in sorted(folder.glob("index*/size"))]
    return max((int(size[:-1]) * UNITS[size[-1]] for size in sizes if size and size[-1] in UNITS), default=0)
