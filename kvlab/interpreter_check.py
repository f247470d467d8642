"""Whether Triton's interpreter computes what it should with the Triton and NumPy that are installed here.

In a notebook: `from kvlab.interpreter_check import interpreter_check; interpreter_check()`. When your own
kernel gives a wrong result, this says whether the interpreter is to blame.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from typing import NamedTuple

WHAT = {
    "loop": "a loop whose bounds are known at run time only",
    "masked": "loads and stores with a mask",
    "weights": "exp2 of minus infinity",
    "far": "64-bit addresses",
    "float32": "tl.dot of float32",
    "float16": "tl.dot of float16, converted to float32 first",
    "bfloat16": "tl.dot of bfloat16, converted to float32 first",
    "float8": "tl.dot of float8_e4m3fn, converted to float32 first",
    "bfloat16 itself": "tl.dot of bfloat16 as it is",
}
# Wrong in every release so far: the interpreter takes the 16 bits of a bfloat16 for a number.
KNOWN_WRONG = "bfloat16 itself"
PAIR = "install the versions of constraints.txt (`make lab` does), then restart the notebook's kernel"


class Finding(NamedTuple):
    """said: "" when the interpreter is right, else what it did."""

    name: str
    said: str


def examine() -> list[Finding]:
    """Run the probes in a process of their own; a Triton that does not even start is one finding."""
    command = [sys.executable, "-m", "kvlab.interpreter_probes"]
    done = subprocess.run(
        command, env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return [Finding("starting Triton", last)]
    return [Finding(name, said) for name, said in json.loads(done.stdout).items()]


def interpreter_check() -> bool:
    """Print what the interpreter gets right here; returns whether all that kvlab relies on is right."""
    findings = examine()
    print(f"Triton {_version('triton')} interpreting with NumPy {_version('numpy')}:")
    for name, said in findings:
        known = name == KNOWN_WRONG and said
        mark = "known" if known else "WRONG" if said else "right"
        print(f"  {mark}  {WHAT.get(name, name)}{f': {said}' if said else ''}")
    if any(name == KNOWN_WRONG and said for name, said in findings):
        print("Convert bfloat16 to float32 before you compute with it here; compiled kernels need not.")
    wrong = [name for name, said in findings if said and name != KNOWN_WRONG]
    if wrong:
        print(f"The interpreter itself is wrong here, not your kernel: {PAIR}.")
    else:
        print("The interpreter can be trusted: a wrong result comes from the kernel.")
    return not wrong


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"
