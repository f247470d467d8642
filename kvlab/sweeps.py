"""Many runs at once: allocators, block sizes and maximum lengths on one workload, over processes.

Each run is a `Point` and knows all that it needs, its workload's seed included, so the figures are the same
however many processes there are and in whatever order they finish.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import product

from joblib import Parallel, delayed

from kvlab.allocator import Allocator
from kvlab.contiguous import GrowAndCopy, Oracle, PowerOfTwo, ReserveMax
from kvlab.paged_allocator import PagedAllocator
from kvlab.simulation import Progress, Result, run
from kvlab.workloads import Workload, workload

OPT_13B_SLOTS = 15_728
"""Slots of OPT-13B in 12 GiB: 12 * 2**30 // 819,200 B a token, as in the PagedAttention paper."""


@dataclass(frozen=True)
class Point:
    """One run: an allocator by name, the memory, the workload by name and seed (or a `Workload`)."""

    allocator: str = "paged"
    workload: str | Workload = "sharegpt"
    count: int = 1500
    seed: int = 0
    num_slots: int = OPT_13B_SLOTS
    max_len: int = 2048
    block_size: int = 16

    def make_workload(self) -> Workload:
        """The requests, cut to max_len."""
        if isinstance(self.workload, Workload):
            return self.workload.cut(self.max_len)
        return workload(self.workload, self.count, seed=self.seed, max_len=self.max_len)

    def make_allocator(self) -> Allocator:
        """A fresh allocator. ValueError for a name that is not in `ALLOCATORS`."""
        if self.allocator not in ALLOCATORS:
            raise ValueError(f"there is no allocator {self.allocator!r}; there are: {', '.join(ALLOCATORS)}")
        return ALLOCATORS[self.allocator](self)


ALLOCATORS: dict[str, Callable[[Point], Allocator]] = {
    "reserve max": lambda p: ReserveMax(p.num_slots, p.max_len),
    "power of two": lambda p: PowerOfTwo(p.num_slots, p.max_len),
    "oracle": lambda p: Oracle(p.num_slots, p.max_len),
    "first fit": lambda p: GrowAndCopy(p.num_slots),
    "first fit, compacting": lambda p: GrowAndCopy(p.num_slots, compaction=True),
    "paged": lambda p: PagedAllocator(p.num_slots, p.block_size),
}
"""How each named allocator is made for a point."""


def points(base: Point | None = None, **values: Iterable) -> list[Point]:
    """Every combination: `points(allocator=["oracle", "paged"], block_size=[8, 16])` gives 4 points."""
    base = base or Point()
    return [replace(base, **dict(zip(values, chosen, strict=True))) for chosen in product(*values.values())]


def sweep(points: Iterable[Point], *, jobs: int = 1, progress: Progress | None = None) -> list[Result]:
    """The result of each point, in the order of the points.

    Args:
        jobs: processes; -1 for one a core.
        progress: called with (points done, points in all).

    Raises:
        ValueError: from a point that cannot be run; nothing is returned then.
    """
    points = list(points)
    for point in points:
        point.make_allocator()
    runs = Parallel(n_jobs=jobs, return_as="generator")(delayed(_run)(point) for point in points)
    results = []
    for result in runs:
        results.append(result)
        if progress is not None:
            progress(len(results), len(points))
    return results


def _run(point: Point) -> Result:
    return run(point.make_workload(), point.make_allocator())
