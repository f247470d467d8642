"""What notebook 10 measures: which points, what it says about them, and that a live run can be stopped."""

import pytest

from kvlab import contenders
from kvlab.exercises.n10_decode_timing import live
from kvlab.roofline import Roofline
from kvlab.timing_sweeps import SWEEPS
from kvlab.traffic import DecodeShape


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(contenders, "last_level_cache", lambda device: 50_000)
    monkeypatch.setattr(live, "BASE", DecodeShape(1, 32, 4, 2, 32))
    monkeypatch.setattr(live, "DEVICE", "cpu")
    monkeypatch.setattr(live, "OPTIONS", {"device": "cpu", "rounds": 2})


@pytest.mark.skipif(live.GPU, reason="there is a GPU here")
def test_without_a_gpu_it_says_so():
    assert live.where().startswith("Not measured on a GPU yet")


def test_every_sweep_has_points_and_a_notebook_takes_some():
    assert {point.sweep for point in live.points(*SWEEPS)} == set(SWEEPS)
    assert [point.value for point in live.points("block size")] == [1, 4, 16, 64, 256]
    assert len(live.points("context")) == 4


def test_a_sweep_prints_a_line_for_each_point(tiny, capsys):
    rows = live.sweep("splits")
    lines = capsys.readouterr().out.splitlines()
    assert [row["value"] for row in rows] == [1, 4, 16] and len(lines) == 4
    assert "share of a plain read" in lines[0]
    assert lines[2].startswith("splits     4 ") and "paged, cpu" in lines[2]
    assert max(map(len, lines)) <= 80


def test_all_contenders_stand_side_by_side(tiny):
    names = set(live.side_by_side()["contenders"])
    assert names == {"contiguous SDPA", "gather, then SDPA", "torch.cat, then SDPA", "paged, cpu"}


def test_times_come_in_pairs_with_the_first_call(tiny):
    read_times, own_times = live.take_times(rounds=3)
    assert len(read_times) == len(own_times) == 4 and min(read_times + own_times) >= 0


def test_a_live_run_stops_on_request(tiny):
    arguments = live.live("dtype", "splits")
    assert arguments["total"] == 6
    assert len(list(arguments["run"](lambda: False))) == 6
    seen = []
    for row in arguments["run"](lambda: bool(seen)):
        seen.append(row)
    assert len(seen) == 1


def test_a_roofline_in_words():
    assert live.told(Roofline(10e9, 80e9)) == (
        "this machine reads 10.0 GB/s and does 80 billion operations a second: the ridge is at 8.0 "
        "operations a byte"
    )
