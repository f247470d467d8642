"""Run a learner's kernel parts in Triton's interpreter, in a process of its own."""

from __future__ import annotations

import atexit
import importlib.util
import inspect
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

from kvlab.exercises.exercise import Refused, Untouched

SECONDS = 20  # of computing; a check takes about one
NOT_HERE = "Triton is not installed here (it exists for Linux only), so this waits; the rest goes on."
_HOLD = {"worker": None}


class KernelFailed(RuntimeError):
    """The parts raised, crashed or did not end; the message goes after "your `name` "."""


def available() -> bool:
    """Whether kernels can be interpreted on this machine."""
    return importlib.util.find_spec("triton") is not None and hasattr(os, "fork")


def run_probe(source: str, probe: str, *arguments: Any, seconds: int | None = None) -> Any:
    """What a function of probes.py returns for parts with this source, in `seconds` of computing.

    Raises:
        KernelFailed: with what happened.
    """
    seconds = SECONDS if seconds is None else seconds
    request = {"source": source, "probe": probe, "arguments": arguments, "seconds": seconds}
    answer = _ask(json.dumps(request))
    if "result" in answer:
        return answer["result"]
    if "error" in answer:
        raise KernelFailed(f"raised {answer['error']}")
    if answer.get("late"):
        raise KernelFailed(f"did not return within {seconds} s and was stopped (a loop that never ends?)")
    raise KernelFailed("read memory that is not there, and the process died (is a load's mask missing?)")


def text_of(functions: Iterable[Callable]) -> str:
    """The learner's functions as text that stands alone.

    Raises:
        Refused: the text cannot be had, with a sentence.
    """
    from kvlab.exercises.standalone import CannotStandAlone, standalone_source

    plain = [inspect.unwrap(getattr(function, "fn", function)) for function in functions]  # no @triton.jit
    try:
        return standalone_source(plain)
    except CannotStandAlone as error:
        raise Refused(f"your code could not be sent to the interpreter: {error}.") from None


def probe_answer(trial: Any, cases: list, *, given: str = "run in the interpreter") -> list:
    """What the exercise's one function gives for each case of its probe."""
    require_triton()
    name = trial.name.strip("`")
    text = text_of([trial.answer])
    written = getattr(trial.answer, "__name__", name)
    if written != name:
        text += f"\n\n{name} = {written}\n"
    try:
        return run_probe(text, name, cases)
    except KernelFailed as failure:
        raise Refused(f"{given}: your {trial.name} {failure}.") from None


def require_triton() -> None:
    """Untouched, with a sentence, where there is no Triton."""
    if not available():
        raise Untouched(NOT_HERE)


def close_to(got: Any, expected: Any, tolerance: float = 1e-4) -> bool:
    """Nested lists of numbers, equal up to rounding; NaN equals nothing, infinities equal themselves."""
    if isinstance(expected, list | tuple):
        return len(got) == len(expected) and all(map(close_to, got, expected))
    if math.isinf(expected) or math.isinf(got):
        return got == expected
    return abs(got - expected) <= tolerance * max(1.0, abs(expected))


def told(value: Any) -> str:
    """Nested lists of numbers in three figures."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(told, value))}]"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _ask(line: str) -> dict:
    worker = _HOLD["worker"]
    if worker is None or worker.poll() is not None:
        worker = _HOLD["worker"] = _start()
    try:
        worker.stdin.write(line + "\n")
        worker.stdin.flush()
        answer = worker.stdout.readline()
    except BaseException:  # the reader pressed stop: half an answer may be under way
        _stop()
        raise
    if not answer:
        _stop()
        raise KernelFailed("could not be run: Triton's interpreter does not start here; try `make doctor`")
    return json.loads(answer)


def _start() -> subprocess.Popen:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "kvlab.exercises.n06_triton_kernel.worker"]
    atexit.register(_stop)
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _stop() -> None:
    worker, _HOLD["worker"] = _HOLD["worker"], None
    if worker is not None:
        worker.kill()
        worker.wait()
