"""The kernel compiled for GPUs that are not here: 16-byte copies, matrix instructions, registers, spills."""

import os
import subprocess
import sys

import pytest

from kvlab.compile_report import TARGETS, VARIANTS, Compiled, read_report, table

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Triton exists for Linux only")

CHOSEN = ("bfloat16", "bfloat16, no hints", "float8", "float32", "head_dim 80")
MAX_REGISTERS = 200  # loose: 162 at most today; 255 is where a thread's registers end


@pytest.fixture(scope="module")
def report():
    """Each (target, variant) of CHOSEN, compiled in one process of its own."""
    return {(row.target, row.variant): row for row in read_report(TARGETS, CHOSEN)}


def test_every_choice_has_a_row(report):
    assert list(report) == [(target, name) for target in TARGETS for name in sorted(CHOSEN, key=place)]


def place(name):
    return [variant.name for variant in VARIANTS].index(name)


@pytest.mark.parametrize("variant", ["bfloat16", "float8", "float32", "head_dim 80"])
@pytest.mark.parametrize("target", TARGETS)
def test_no_spills_and_wide_copies(report, target, variant):
    row = report[target, variant]
    if row.refusal:
        assert (target, variant) == ("sm_80", "float8")
        return
    assert row.spills == 0
    assert 0 < row.registers <= MAX_REGISTERS
    assert row.wide_copies >= 4
    assert 0 < row.shared_bytes <= 99 * 1024  # what the smallest of the supported GPUs has for a program


@pytest.mark.parametrize("variant", ["bfloat16", "float8", "head_dim 80"])
@pytest.mark.parametrize("target", TARGETS)
def test_matrix_instructions(report, target, variant):
    assert report[target, variant].matrix_instructions >= 16 or report[target, variant].refusal


def test_float8_is_refused_for_sm_80_in_a_sentence(report):
    assert (
        "float8_e4m3fn cache needs an NVIDIA GPU of compute capability 8.9"
        in report["sm_80", "float8"].refusal
    )
    assert "keep K and V in bfloat16 or float16" in table([report["sm_80", "float8"]])


@pytest.mark.parametrize("target", TARGETS)
def test_hints_buy_the_wide_copies_and_the_registers(report, target):
    """Without knowing that 16 divides addresses and strides, nothing is copied 16 bytes at a time."""
    with_hints, without = report[target, "bfloat16"], report[target, "bfloat16, no hints"]
    assert without.wide_copies == 0 < with_hints.wide_copies
    assert without.spills > 0
    assert without.registers > with_hints.registers


def test_table():
    rows = [Compiled("sm_90", "bfloat16", 108, 0, 39168, 32, 32), Compiled("sm_80", "float8", refusal="No.")]
    head, first, second = table(rows).splitlines()
    assert " ".join(head.split()) == "target variant registers spills shared 16 B copies matrix"
    assert " ".join(first.split()) == "sm_90 bfloat16 108 0 39168 32 32"
    assert " ".join(second.split()) == "sm_80 float8 No."


def test_interpreting_and_compiling_do_not_mix():
    command = [sys.executable, "-m", "kvlab", "compile-report", "--target", "sm_90", "--variant", "bfloat16"]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "TRITON_INTERPRET is set" in done.stderr and done.stdout == ""


def test_the_command_prints_the_table(report):
    command = [sys.executable, "-m", "kvlab", "compile-report", "--target", "sm_90", "--variant", "bfloat16"]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert table([report["sm_90", "bfloat16"]]) in done.stdout
    assert "Registers of a thread" in done.stdout


def test_a_process_that_fails_is_reported(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="compiling failed"):
        read_report(["sm_90"], ["bfloat16"])
