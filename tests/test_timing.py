"""How time is taken, on a clock that the test turns itself; no test looks at real time."""

import pytest
import torch

from kvlab import timing
from kvlab.timing import Spread, Timed, copies_needed, last_level_cache, measure, shares


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until something adds to `clock.now`."""

    class Clock:
        now = 0.0

    monkeypatch.setitem(timing.CLOCKS, "wall", lambda: Clock.now)
    monkeypatch.setattr(timing, "perf_counter", lambda: Clock.now)
    return Clock


def taking(clock, calls, name, *seconds):
    """A contender that takes these seconds, one call after another; the last one for all that follow."""
    times = list(seconds)

    def run():
        calls.append(name)
        clock.now += times.pop(0) if len(times) > 1 else times[0]

    return run


def test_first_calls_are_apart_and_rounds_are_taken_in_turns(clock):
    calls = []
    contenders = {"a": taking(clock, calls, "a", 30, 1, 2, 3), "b": taking(clock, calls, "b", 5)}
    times = measure(contenders, rounds=3)
    assert times == {"a": Timed(30, (1, 2, 3)), "b": Timed(5, (5, 5, 5))}
    assert "".join(calls) == "abababab"
    assert times["a"].median == 2


def test_no_further_round_when_the_time_is_up_but_three_in_any_case(clock):
    for allowed, rounds in ((0, 3), (45, 5), (1000, 10)):
        times = measure({"a": taking(clock, [], "a", 10)}, rounds=10, seconds=allowed)
        assert len(times["a"].rounds) == rounds


def test_stop_ends_after_the_round(clock):
    calls = []
    run = taking(clock, calls, "a", 1)
    times = measure({"a": run, "b": run}, rounds=10, stop=lambda: len(calls) >= 6)
    assert [len(timed.rounds) for timed in times.values()] == [2, 2]


def test_a_share_is_taken_within_each_round():
    limit, own = Timed(0, (1, 10, 1)), Timed(0, (2, 20, 4))
    assert shares(limit, own).median == 0.5
    assert shares(limit, limit) == (1, 1, 1)


def test_spread_is_the_median_and_the_quartiles():
    assert Spread.of([4, 1, 2, 3, 5]) == (3, 2, 4)
    assert Spread.of([7]) == (7, 7, 7)


@pytest.mark.parametrize("size", [1, 1000, 2**20, 2**25, 2**26, 2**30])
def test_between_two_uses_of_a_copy_twice_the_cache_passes_by(size):
    cache = 2**25
    copies = copies_needed(size, cache)
    passing = (copies - 1) * size if copies > 1 else size
    assert passing >= 2 * cache
    assert copies == 1 or (copies - 2) * size < 2 * cache


def test_the_cache_is_the_largest_that_the_system_names(tmp_path, monkeypatch):
    for index, size in enumerate(("32K", "512K", "16M", "")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(f"{size}\n")
    assert timing._largest_cache(tmp_path) == 16 * 2**20
    monkeypatch.setattr(timing, "_largest_cache", lambda folder: 0)
    assert last_level_cache() == timing.CACHE_UNKNOWN


def test_mistakes_get_a_sentence():
    with pytest.raises(ValueError, match="rounds must be at least 1"):
        measure({}, rounds=0)
    with pytest.raises(ValueError, match="clock must be one of wall, cpu, not 'sun'"):
        measure({}, clock="sun")


def test_on_a_gpu_the_device_is_kept_busy_and_its_own_events_are_read(monkeypatch):
    done = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            done.append(self)

        def elapsed_time(self, end):
            assert end is not self and done[-1] == "waited"
            return 250.0  # milliseconds

    class Filler:
        def zero_(self):
            done.append("busy")

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: done.append("waited"))
    monkeypatch.setattr(torch, "empty", lambda *size, **options: Filler())
    time_of = timing.stopwatch("cuda")
    assert time_of(lambda: done.append("run")) == 0.25
    assert done[0] == "busy" and done[2] == "run" and done[4] == "waited" and len(done) == 5
