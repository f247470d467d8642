"""Points, rows and documents of the bench; the times in them are made up or not looked at."""

import json

import pytest

from kvlab import contenders
from kvlab.__main__ import main
from kvlab.bandwidth import COPY, READ
from kvlab.contenders import CONTIGUOUS, GATHER, GROW
from kvlab.timing import Timed
from kvlab.timing_report import heading, left_out_text, row_text
from kvlab.timing_sweeps import (
    SWEEPS,
    TILE,
    Point,
    as_row,
    document,
    measure_point,
    run_points,
    sweep_points,
)
from kvlab.traffic import DecodeShape
from kvlab.triton_setup import CONFIGS

TINY = DecodeShape(2, 24, 4, 2, 32, 16)
OURS = "paged, cpu"


@pytest.fixture(autouse=True)
def small_cache(monkeypatch):
    monkeypatch.setattr(contenders, "last_level_cache", lambda device: 50_000)


def made_up_row():
    shape = DecodeShape(4, 1024)
    kv = shape.kv_bytes  # 33,554,432
    times = {
        READ: Timed(0, (kv / 10e9, kv / 10e9, kv / 5e9)),
        COPY: Timed(0, (kv / 4e9,) * 3),
        CONTIGUOUS: Timed(0, (kv / 4e9, kv / 4e9, kv / 2e9)),
        GROW: Timed(0, (kv / 2e9,) * 3),
        OURS: Timed(12.5, (kv / 5e9, kv / 5e9, kv / 2.5e9)),
    }
    return as_row(Point("batch", 4, shape), times, {GATHER: "no reason"})


def test_a_row_holds_bytes_limits_shares_and_spread():
    row = made_up_row()
    assert row["read_bytes_per_s"][0] == pytest.approx(10e9)
    assert row["copy_bytes_per_s"][0] == pytest.approx(8e9)  # every byte twice
    least = row["must_move"] / DecodeShape(4, 1024).kv_bytes
    assert 1 < least < 1.01
    assert row["contenders"][OURS]["share"] == pytest.approx([0.5 * least] * 3)
    assert row["contenders"][CONTIGUOUS]["share"] == pytest.approx([0.4 * least] * 3)
    assert row["contenders"][GROW]["bytes_copied"] == 33_554_432 // 1024 * 1023
    assert row["contenders"][OURS]["first_s"] == 12.5
    assert json.loads(json.dumps(row)) == row


def test_the_table_says_it_in_words():
    text = row_text(made_up_row())
    assert "batch = 4: 4 x 1024 tokens, 32/8 heads" in text
    assert "read 10.00 GB/s" in text and "copy 8.00 GB/s" in text
    assert "share 0.50 (0.50 to 0.50)   first call 12.5 s" in text
    assert "paged, cpu is 1.25 x contiguous SDPA" in text
    assert "copied 33.5 MB of old tokens, 67.1 MB at the peak" in text
    assert text.index(OURS) < text.index(CONTIGUOUS) < text.index(GROW)
    assert left_out_text([made_up_row()] * 2) == "gather, then SDPA left out: no reason."


def test_a_busy_machine_is_no_reference(monkeypatch):
    made = document([], device="cpu", clock="wall", seed=3)
    assert made["machine"]["versions"]["torch"] and made["date"] and made["seed"] == 3
    made["machine"]["load"] = 0.1
    assert "no reference" not in heading(made)
    made["machine"]["load"] = 7.0
    assert "Others were working here (load 7.0)" in heading(made)


def test_sweeps_change_one_thing():
    points = sweep_points(DecodeShape(4, 2048), ("float32", "bfloat16"))
    assert tuple(dict.fromkeys(point.sweep for point in points)) == SWEEPS
    of = {name: [point.value for point in points if point.sweep == name] for name in SWEEPS}
    assert of["block size"] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert of["context"] == [512, 1024, 2048, 4096] and of["batch"] == [1, 2, 4, 8]
    assert of["KV heads"] == [32, 16, 8, 4, 1] and of["dtype"] == ["float32", "bfloat16"]
    for point in points:
        if point.sweep in ("block size", "splits"):
            assert point.shape.kv_bytes == DecodeShape(4, 2048).kv_bytes
        point.shape.check()
    assert {point.shape.num_seqs for point in points if point.sweep == "splits"} == {1}
    assert sweep_points(DecodeShape(4, 2048), (), ["splits"]) == [p for p in points if p.sweep == "splits"]
    with pytest.raises(ValueError, match="there is no sweep 'blocks'; there are: context, batch"):
        sweep_points(TINY, (), ["blocks"])


def test_the_tile_sweep_tries_every_declared_config():
    points = sweep_points(TINY, ("bfloat16", "float8_e4m3fn"), [TILE])
    assert [point.config for point in points] == [*CONFIGS, *CONFIGS]
    assert points[0].value == "bfloat16 128/4/2" and points[-1].shape.dtype == "float8_e4m3fn"
    assert TILE not in {point.sweep for point in sweep_points(TINY, ("float32",))}


def test_a_point_is_measured_and_compared(monkeypatch):
    row = measure_point(Point("splits", 2, TINY, 2, (GATHER,)), rounds=2, backends=("reference",))
    assert set(row["contenders"]) == {CONTIGUOUS, GROW, "paged, reference"}
    assert row["rounds"] == 2 and row["num_splits"] == 2
    assert all(figures["seconds"][0] > 0 for figures in row["contenders"].values())
    monkeypatch.setattr(contenders, "paged_decode", lambda q, *args, **options: q)
    with pytest.raises(AssertionError, match="paged, reference differs"):
        measure_point(Point("splits", 2, TINY), rounds=1, backends=("reference",))


def test_rows_come_one_by_one_and_stop_on_request():
    points = [Point("context", n, TINY._replace(context=n)) for n in (8, 16, 24)]
    options = {"rounds": 1, "backends": ("reference",)}
    assert [number for number, _ in run_points(points, **options)] == [0, 1, 2]
    seen = []
    for number, row in run_points(points, stop=lambda: bool(seen), **options):
        seen.append((number, row["value"]))
    assert seen == [(0, 8)]
    assert list(run_points(points, budget=0, **options)) == []


def test_the_command_prints_rows_and_writes_json(tmp_path, capsys):
    out = tmp_path / "bench.json"
    size = ["--seqs", "1", "--context", "64", "--rounds", "1", "--device", "cpu", "--no-flex"]
    assert main(["bench", "--sweep", "dtype", *size, "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "dtype = float32: 1 x 64 tokens" in shown and "[3 of 3 points]" in shown
    made = json.loads(out.read_text())
    assert [row["value"] for row in made["rows"]] == ["float32", "bfloat16", "float16"]
    assert made["not_measured"] == [] and made["machine"]["device"] == "cpu"


def test_the_command_names_what_the_budget_left(capsys):
    assert main(["bench", "--sweep", "splits", "--context", "64", "--device", "cpu", "--budget", "0"]) == 0
    assert "not measured: splits = 1, splits = 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (["--sweep", "speed"], "there is no sweep 'speed'"),
        (["--sweep", "tile"], "needs a GPU: leave it out"),
        (["--dtype", "int8"], "dtype must be one of float32"),
        (["--context", "0"], "context must be a whole number of at least 1"),
        (["--rounds", "0"], "--rounds must be at least 1"),
        (["--out", "no/such/folder/x.json"], "No such file"),
    ],
)
def test_the_command_refuses(option, says, capsys):
    assert main(["bench", "--device", "cpu", *option]) == 2
    assert says in capsys.readouterr().err
