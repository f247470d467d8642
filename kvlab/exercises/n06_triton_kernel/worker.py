"""A process that interprets Triton kernels: reads a request a line, answers each from a child of its own.

Triton decides at import whether it interprets, so this cannot happen in the notebook's process. The child is
a fork: it starts at once, and whatever a learner's kernel does (an endless loop, a read of memory that is
not there) ends the child only.

Request: {"source": text of the parts, "probe": name in probes.py, "arguments": [...], "seconds": n}
Answer: {"result": ...} or {"error": sentence} or {"died": signal number} or {"late": true}
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import os
import resource
import select
import signal
import sys
import tempfile
import warnings
from pathlib import Path

BUSY = 6  # a busy machine may take so many times longer than the seconds that are allowed of computing


def jitted(source: str) -> str:
    """The source with `@triton.jit` above every function at its top level that has no decorator."""
    lines = source.splitlines()
    bare = [
        node.lineno - 1
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and not node.decorator_list
    ]
    for number in reversed(bare):
        lines.insert(number, "@triton.jit")
    return "\n".join(lines) + "\n"


def build(source: str, folder: str):
    """A module of the learner's parts, the lesson's kernels and the probes."""
    from kvlab.exercises.n06_triton_kernel import lesson_kernel, probes

    text = "\n\n".join([jitted(source), lesson_kernel.KERNEL, probes.KERNELS])
    path = Path(folder) / "parts.py"
    path.write_text("import triton\nimport triton.language as tl\n\n" + text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("parts", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["parts"] = module
    spec.loader.exec_module(module)
    return module


def answer(request: dict) -> dict:
    """Carry a request out, in the child."""
    from kvlab.exercises.n06_triton_kernel import probes

    resource.setrlimit(resource.RLIMIT_CPU, (request["seconds"], request["seconds"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        try:
            probe = getattr(probes, request["probe"])
            return {"result": probe(build(request["source"], folder), *request["arguments"])}
        except Exception as error:
            return {"error": telling(error)}


def telling(error: BaseException) -> str:
    """The cause of an interpreter's error in one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[-1].strip()}" if lines else type(error).__name__


def in_a_child(request: dict) -> dict:
    """The answer of a forked child, or how it ended."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, json.dumps(answer(request)).encode())
        finally:
            os._exit(0)
    os.close(write)
    said, late = b"", False
    while True:
        ready, _, _ = select.select([read], [], [], request["seconds"] * BUSY)
        late = not ready
        piece = os.read(read, 1 << 16) if ready else b""
        if not piece:
            break
        said += piece
    if late:
        os.kill(child, signal.SIGKILL)
    os.close(read)
    _, status = os.waitpid(child, 0)
    if said and not late:
        return json.loads(said)
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    late = late or killed in (signal.SIGXCPU, signal.SIGKILL)
    return {"late": True} if late else {"died": killed}


def main() -> None:
    warnings.simplefilter("ignore")  # exp(-inf) and the like are part of the lesson
    import torch

    torch.set_num_threads(1)
    importlib.import_module("kvlab.exercises.n06_triton_kernel.probes")  # once, before the forks

    for line in sys.stdin:
        print(json.dumps(in_a_child(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
