"""Running a workload on an allocator, step by step: by hand, for conservation, and over processes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.arrivals import Closed, Poisson
from kvlab.contiguous import GrowAndCopy, Oracle, ReserveMax
from kvlab.lengths import Fixed, Uniform
from kvlab.paged_allocator import PagedAllocator
from kvlab.simulation import Simulation, run
from kvlab.sweeps import ALLOCATORS, Point, points, sweep
from kvlab.workloads import Request, Workload, workload


def load(*lengths, users=None, arrivals=None):
    times = arrivals or [0.0] * len(lengths)
    requests = tuple(Request(i, times[i], *pair) for i, pair in enumerate(lengths))
    return Workload("by hand", requests, users)


def test_three_requests_by_hand():
    """Slots for two at a time: the third is admitted when the first has left."""
    simulation = Simulation(load((2, 2), (2, 1), (3, 1)), ReserveMax(8, 4))
    assert simulation.step() == (6, 1, 1, 0)
    assert list(simulation.running) == [0] and list(simulation.waiting) == [(Request(2, 0.0, 3, 1), 0)]
    assert simulation.step() == (8, 0, 0, 0)
    assert simulation.done
    result = simulation.result()
    assert (result.steps, result.steps_counted, result.finished, result.peak_batch) == (2, 1, 3, 2)
    assert (result.tokens, result.batch, result.held) == (6 / 8, 2, 6 / 8)


def test_the_request_admitted_last_is_preempted_and_comes_back_with_its_tokens():
    """3 blocks of 2 for two prompts of 2: only one can grow, so the other steps back."""
    simulation = Simulation(load((2, 3), (2, 3)), PagedAllocator(6, 2))
    simulation.step()
    assert (list(simulation.running), list(simulation.waiting)) == ([0], [(Request(1, 0.0, 2, 3), 0)])
    assert simulation.allocator.account() == (3, 1, 0, 2)
    result = run(load((2, 3), (2, 3)), PagedAllocator(6, 2))
    assert (result.finished, result.peak_batch) == (2, 1)
    assert result.preempted >= 1


def test_nobody_overtakes_the_head_of_the_queue():
    simulation = Simulation(load((6, 1), (7, 1), (1, 1)), Oracle(10, 10, "first fit"))
    simulation.step()
    assert [request.request_id for request, _ in simulation.waiting] == [1, 2]


def test_what_can_never_fit_is_refused_and_the_rest_goes_on():
    result = run(load((9, 9), (2, 2), (90, 1)), ReserveMax(16, 8))
    assert (result.finished, result.refused) == (1, 2)


def test_arrivals_are_waited_for():
    """5 s apart and a step of 1 s: never two at a time, and idle steps are passed over."""
    apart = load((1, 2), (1, 2), arrivals=[0.0, 5.0])
    result = run(apart, PagedAllocator(16, 4), step_seconds=1.0)
    assert (result.peak_batch, result.steps, result.steps_counted) == (1, 7, 0)
    assert result.tokens == 0, "the memory was never full"
    together = run(apart, PagedAllocator(16, 4), step_seconds=5.0)
    assert together.peak_batch == 2


def test_closed_arrivals_keep_so_many_in_the_system():
    lengths = (Uniform(1, 20), Uniform(1, 20))
    closed = workload(lengths, 60, arrivals=Closed(3))
    assert run(closed, PagedAllocator(4096, 16)).peak_batch == 3
    assert run(workload(lengths, 60), PagedAllocator(4096, 16)).peak_batch == 60


def test_progress_is_told():
    told = []
    run(workload((Fixed(4), Fixed(3)), 10), ReserveMax(16, 8), progress=lambda *seen: told.append(seen))
    assert told == [(2, 10), (4, 10), (6, 10), (8, 10), (10, 10)]


@given(
    lengths=st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=25),
    name=st.sampled_from(list(ALLOCATORS)),
    slots=st.sampled_from([40, 64, 100]),
    users=st.one_of(st.none(), st.integers(1, 4)),
)
@settings(max_examples=80)
def test_every_request_finishes_or_is_refused_and_all_slots_come_back(lengths, name, slots, users):
    point = Point(allocator=name, num_slots=slots, max_len=40, block_size=4)
    allocator = point.make_allocator()
    simulation = Simulation(load(*lengths, users=users), allocator)
    while not simulation.done:
        account = simulation.step()
        assert account.total == allocator.num_slots and min(account) >= 0
        assert simulation.steps < 100_000
    allocator.check()
    refused = sum(allocator.problem(*pair) is not None for pair in lengths)
    assert (simulation.finished, simulation.refused) == (len(lengths) - refused, refused)
    assert allocator.account() == (0, 0, 0, allocator.num_slots)


def test_first_fit_refuses_what_paged_admits():
    """The same load and memory: holes keep a third of first fit's slots from everybody; copies are the price
    of closing them."""
    base = Point(count=150)
    names = ["first fit", "first fit, compacting", "paged"]
    plain, compacting, paged = sweep(points(base, allocator=names))
    assert plain.external > 0.2 > 0.03 > max(paged.external, compacting.external)
    assert compacting.copies > 10 * plain.copies > paged.copies == 0


def test_the_same_seed_gives_the_same_figures_over_any_number_of_processes():
    told = []
    base = Point(workload="alpaca", count=40, num_slots=2048, max_len=512)
    wanted = points(base, allocator=["oracle", "paged"], block_size=[8, 32], max_len=[256, 512])
    one = sweep(wanted)
    two = sweep(wanted, jobs=2, progress=lambda *seen: told.append(seen))
    assert one == two == [run(p.make_workload(), p.make_allocator()) for p in wanted]
    assert (len(one), told[-1]) == (8, (8, 8))
    assert sweep([Point(count=20, seed=1)]) != sweep([Point(count=20, seed=2)])


def test_a_sweep_takes_a_workload_of_ones_own():
    (result,) = sweep([Point(workload=load((5, 5), (500, 3)), max_len=16, num_slots=32, block_size=4)])
    assert (result.workload, result.finished) == ("by hand", 2)


def test_bad_points_are_refused_before_anything_runs():
    with pytest.raises(ValueError, match="there is no allocator 'slab'; there are: reserve max"):
        sweep([Point(), Point(allocator="slab")])
    with pytest.raises(ValueError, match="step_seconds must be positive"):
        Simulation(load((1, 1)), GrowAndCopy(8), step_seconds=0)


def test_cost_is_linear_in_tokens():
    """4 times the requests: about 4 times the operations on the allocator, counted, not timed."""
    counts = []
    for count in (100, 400):
        allocator = PagedAllocator(15_728, 16)
        counted = Counting(allocator)
        wanted = workload("sharegpt", count, seed=3, max_len=2048)
        run(wanted, counted)
        counts.append(counted.calls / wanted.num_tokens)
        print(f"{count} requests: {counts[-1]:.2f} operations on the allocator a token")
    assert counts[1] == pytest.approx(counts[0], rel=0.25)


class Counting:
    """An allocator whose operations are counted."""

    def __init__(self, allocator):
        self._allocator, self.calls = allocator, 0

    def append(self, request_id):
        self.calls += 1
        self._allocator.append(request_id)

    def __getattr__(self, name):
        self.calls += 1
        return getattr(self._allocator, name)


def test_poisson_arrivals_below_capacity_leave_nobody_waiting_for_long():
    quiet = workload((Fixed(16), Fixed(16)), 100, arrivals=Poisson(0.5))
    assert run(quiet, PagedAllocator(4096, 16), step_seconds=0.05).steps_counted == 0
