"""Notebook 06's checks run a learner's code in another process: whatever it does becomes a sentence."""

import os
import subprocess
import sys

import pytest

from kvlab.exercises import get
from kvlab.exercises.checking import judge
from kvlab.exercises.n06_triton_kernel import interpreted, running
from kvlab.exercises.n06_triton_kernel.patients import BATCHES, FAULTS, examine, symptoms
from kvlab.exercises.registry import define

needs_triton = pytest.mark.skipif(not interpreted.available(), reason="there is no Triton here")


def answer_to(id, source=None):
    exercise = get(id)
    return define(exercise, exercise.solution if source is None else source)


@needs_triton
def test_an_endless_loop_ends_with_a_sentence(monkeypatch):
    monkeypatch.setattr(interpreted, "SECONDS", 2)
    endless = "def split_bounds(length, split, num_splits, TILE):\n    while True:\n        pass\n"
    result = judge(get("06.split_bounds"), answer_to("06.split_bounds", endless))
    assert result.state == "failed"
    assert "did not return within 2 s and was stopped" in result.message


@needs_triton
def test_a_crash_ends_the_child_and_the_next_check_runs():
    crashes = (
        "def split_bounds(length, split, num_splits, TILE):\n    import os\n    os.kill(os.getpid(), 11)\n"
    )
    result = judge(get("06.split_bounds"), answer_to("06.split_bounds", crashes))
    assert "the process died" in result.message
    assert judge(get("06.split_bounds"), answer_to("06.split_bounds")).state == "passed"


@needs_triton
def test_helpers_constants_and_another_name_come_along():
    source = (
        "ONE = 1\n\ndef twice(x):\n    return x + x\n\n"
        "def my_bounds(length, split, num_splits, TILE):\n"
        "    share = tl.cdiv(tl.cdiv(length, TILE), num_splits) * TILE * ONE\n"
        "    return twice(split * share) // 2, tl.minimum(split * share + share, length)\n\n"
        "split_bounds = my_bounds\n"
    )
    result = judge(get("06.split_bounds"), answer_to("06.split_bounds", source))
    assert result.state == "passed", result.message


@needs_triton
def test_a_decorator_of_ones_own_is_fine():
    exercise = get("06.split_bounds")
    decorated = "import triton\n\n@triton.jit\n" + exercise.solution
    result = judge(exercise, define(exercise, decorated))
    assert result.state == "passed", result.message


@needs_triton
def test_each_patient_shows_its_fault_and_nothing_else():
    failing = {
        patient: {name for name, what in symptoms(patient).items() if what != "right"} for patient in FAULTS
    }
    poisoned, wide, long, far = list(BATCHES)[1:]
    assert failing == {"A": {poisoned}, "B": {wide, far}, "C": {far}, "D": {long}}


@needs_triton
def test_the_learners_kernel_says_the_same_tokens(capsys):
    running.same_tokens(answer_to("06.kernel"), count=3)
    assert capsys.readouterr().out.splitlines()[-1] == "the same tokens"
    spoilt = get("06.kernel").wrong[1]
    running.same_tokens(define(get("06.kernel"), spoilt.source), count=3)
    assert capsys.readouterr().out.startswith("your kernel: [")


@needs_triton
def test_the_learners_kernel_serves_the_real_model(model_path, capsys):
    """As in notebook 13: SmolLM2's first tokens, through the learner's parts in the interpreter."""
    running.same_tokens(answer_to("06.kernel"), count=2, real_model=True)
    yours, _, verdict = capsys.readouterr().out.splitlines()
    assert yours.count(",") == 1 and verdict == "the same tokens"


@needs_triton
def test_the_learners_bounds_are_drawn():
    bounds = running.bounds_of(answer_to("06.split_bounds"))
    assert [bounds(70, split, 2, 16) for split in (0, 1)] == [(0, 48), (48, 70)]


def test_without_triton_everything_says_why(monkeypatch, capsys):
    for module in (interpreted, running):
        monkeypatch.setattr(module, "available", lambda: False)
    monkeypatch.setattr("kvlab.exercises.n06_triton_kernel.patients.available", lambda: False)
    for id in ("06.addresses", "06.kernel"):
        result = judge(get(id), answer_to(id))
        assert result.state == "not attempted" and "exists for Linux only" in result.message
    examine("A")
    running.same_tokens([])
    assert running.bounds_of(answer_to("06.split_bounds")) is None
    running.compiled()
    said = capsys.readouterr().out
    assert said.count("exists for Linux only") == 4
    assert "These are the numbers of Triton" in said and "bfloat16, no hints" in said


def test_an_unknown_patient_is_named(capsys):
    examine("E")
    assert "no patient is called 'E': choose one of A, B, C, D." in capsys.readouterr().out


COMPILE = """
import sys, torch
from triton.runtime import driver
from kvlab.cross_compile import StandIn
from kvlab.exercises.n06_triton_kernel import patients, worker

def meta(*size, dtype=torch.float32):
    return torch.empty(*size, dtype=dtype, device="meta")

parts = worker.build("\\n\\n".join(patients.SOLUTIONS), sys.argv[1])
driver.set_active(StandIn("sm_90"))
q, cache, sums = meta(4, 32, 64), meta(64, 16, 8, 64), meta(4, 32, 2)
tables, lens = meta(4, 8, dtype=torch.int32), meta(4, dtype=torch.int32)
strides = 8, *cache.stride()[:3]
outputs = meta(4, 32, 2, 64)
arguments = q, cache, cache, tables, lens, outputs, sums, 0.125, *strides, 4, 16, 64, 16, 16
one = parts.decode_kernel.warmup(*arguments, grid=(4, 8, 2))
other = parts.reduce_kernel.warmup(outputs, sums, q, 2, 64, 2, grid=(128,))
print("cubin" in one.asm and "cubin" in other.asm)
"""


@needs_triton
def test_the_lessons_kernel_compiles_for_a_gpu(tmp_path):
    """What the interpreter forgives: shapes, types and names that only a compiler refuses."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, str(tmp_path)], env=environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == "True", done.stderr
