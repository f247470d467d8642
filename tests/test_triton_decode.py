"""The Triton kernel: interpreted in a process of its own, and what is decided before a launch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from attention_batch import Batch

from kvlab import backends, interpreter_check
from kvlab.attention import paged_decode
from kvlab.interpreter_check import Finding
from kvlab.split_kv import MAX_SPLITS, choose_splits
from kvlab.triton_setup import CONFIGS, check_fp8, check_launch, default_config

HERE = Path(__file__).parent
linux = pytest.mark.skipif(sys.platform != "linux", reason="Triton exists for Linux only")


@linux
def test_the_interpreted_kernel_equals_the_oracle():
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        str(HERE / "interpreted_cases.py"),
    ]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=environment, cwd=HERE.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@linux
def test_the_file_that_people_link_to_stays_short():
    lines = (HERE.parent / "kvlab/triton_decode.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 150


# -- before a launch ----------------------------------------------------------------------------------------


@linux
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_and_an_interpreter_it_says_what_to_do():
    command = [sys.executable, "-c", WITHOUT]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(command, env=environment, cwd=HERE, capture_output=True, text=True, check=True)
    assert "needs a GPU, or the interpreter: set TRITON_INTERPRET=1" in done.stdout


WITHOUT = """
from attention_batch import Batch
try:
    Batch([3], 4).decode(backend="triton")
except RuntimeError as error:
    print(error)
"""


def test_auto_never_interprets():
    batch = Batch([3], 4)
    assert not backends.BACKENDS["triton"].suits(batch.q, batch.k_cache, batch.v_cache)


def test_triton_that_is_absent_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "kvlab.triton_decode", None)

    def missing(name, *_):
        raise ModuleNotFoundError("No module named 'triton'", name="triton")

    monkeypatch.delitem(sys.modules, "kvlab.triton_decode")
    monkeypatch.setattr("builtins.__import__", _importing(missing))
    with pytest.raises(ValueError, match="exists for Linux only"):
        Batch([3], 4).decode(backend="triton")


def _importing(missing):
    real = __import__
    return lambda name, *rest: missing(name) if name == "kvlab.triton_decode" else real(name, *rest)


def test_float8_on_an_older_gpu():
    with pytest.raises(
        RuntimeError, match=r"needs an NVIDIA GPU of compute capability 8\.9.*this one has 8\.0"
    ):
        check_fp8(torch.float8_e4m3fn, (8, 0))
    check_fp8(torch.float8_e4m3fn, (8, 9))
    check_fp8(torch.bfloat16, (8, 0))


def test_refusals_come_before_the_device():
    k_cache = torch.empty(1, 16, 1, 32)
    with pytest.raises(ValueError, match="head_dim up to 256, got 300"):
        check_launch(torch.empty(1, 1, 300), k_cache, None, interpreted=True)
    with pytest.raises(ValueError, match="up to 65535 sequences"):
        check_launch(torch.empty(65536, 1, 32), k_cache, None, interpreted=True)


def test_debug_checks_block_ids_on_any_device():
    """Tensors without memory stand for a GPU's: to read them fails, so a check that is made shows."""
    q, caches = torch.empty(1, 2, 32, device="meta"), torch.empty(3, 4, 2, 32, device="meta")
    tables = torch.zeros(1, 1, dtype=torch.int32, device="meta")
    lens = torch.ones(1, dtype=torch.int32, device="meta")
    called = []
    fake = backends.Backend(lambda *_, **__: called.append(1), lambda *_: True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(backends.BACKENDS, "fake", fake)
        patch.delenv("KVLAB_DEBUG", raising=False)
        paged_decode(q, caches, caches, tables, lens, backend="fake")
        assert called == [1]
        with pytest.raises(NotImplementedError):
            paged_decode(q, caches, caches, tables, lens, backend="fake", debug=True)
        patch.setenv("KVLAB_DEBUG", "1")
        with pytest.raises(NotImplementedError):
            paged_decode(q, caches, caches, tables, lens, backend="fake")
        assert called == [1]


# -- how many splits, which tiles ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("programs", "tiles", "processors", "splits"),
    [
        (512, 128, 132, 1),  # more programs than processors
        (106, 128, 132, 1),  # 0.8 of them busy
        (8, 1, 132, 1),  # nothing to split
        (8, 1024, 132, 14),  # 112 of 132 busy; 16 splits would be the best, and not 15 % better
        (1, 1000, 100, 91),  # 91 parts of 11 tiles; 100 parts of 10 are not 15 % better
        (8, 4, 132, 4),
        (66, 128, 132, 2),
        (1, 100, 1, 1),
        (0, 0, 132, 1),
    ],
)
def test_split_count(programs, tiles, processors, splits):
    assert choose_splits(programs, tiles, processors) == splits


def test_split_counts_are_in_range():
    for programs in range(1, 140, 7):
        for tiles in (1, 2, 3, 17, 300, 5000):
            assert 1 <= choose_splits(programs, tiles, 132) <= min(tiles, MAX_SPLITS)


def test_default_configs_are_declared():
    for head_dim in (32, 64, 80, 96, 128, 256):
        for compute_bytes in (2, 4):
            for rows in (16, 64):
                tile, num_warps, num_stages = default_config(head_dim, rows, compute_bytes)
                assert (tile, num_warps, num_stages) in CONFIGS
                assert 2 * tile * head_dim * compute_bytes <= 32 * 1024


# -- the interpreter's own check ----------------------------------------------------------------------------


@linux
def test_the_installed_interpreter_is_right(capsys):
    assert interpreter_check.interpreter_check()
    shown = capsys.readouterr().out
    assert "The interpreter can be trusted" in shown and shown.count("right") == 8


@pytest.mark.parametrize("name", ["loop", "starting Triton"])
def test_a_wrong_interpreter_is_blamed(capsys, monkeypatch, name):
    findings = [Finding(name, "TypeError: only 0-dimensional arrays"), Finding("far", "")]
    monkeypatch.setattr(interpreter_check, "examine", lambda: findings)
    assert not interpreter_check.interpreter_check()
    shown = capsys.readouterr().out
    assert "WRONG" in shown and "not your kernel" in shown and "constraints.txt" in shown


@linux
def test_a_triton_that_does_not_start_is_a_finding(monkeypatch):
    monkeypatch.setattr(sys, "executable", str(HERE / "conftest.py"))
    monkeypatch.setattr(
        interpreter_check.subprocess,
        "run",
        lambda *_, **__: subprocess.CompletedProcess([], 1, "", "Traceback\nImportError: libtriton"),
    )
    assert interpreter_check.examine() == [Finding("starting Triton", "ImportError: libtriton")]


@linux
def test_a_wrong_number_and_an_error_are_told_apart(monkeypatch):
    from kvlab import interpreter_probes

    monkeypatch.setitem(interpreter_probes.PROBES, "loop", lambda: False)
    monkeypatch.setitem(interpreter_probes.PROBES, "far", lambda: 1 / 0)
    assert interpreter_probes.probe("loop") == "a wrong number, without an error"
    assert interpreter_probes.probe("far") == "ZeroDivisionError: division by zero"
