"""Runs a notebook under nbval in a process of its own and reads back what each cell said."""

import ast
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Ran:
    """A code cell after nbval ran it."""

    id: str
    source: str
    tags: tuple[str, ...]
    text: str
    html: str
    seconds: float
    passed: bool

    @classmethod
    def from_json(cls, cell: dict) -> "Ran":
        text, html = [], []
        for output in cell["outputs"]:
            text.append(output.get("text", ""))
            text.append(output.get("data", {}).get("text/plain", ""))
            html.append(output.get("data", {}).get("text/html", ""))
            html.append(output.get("data", {}).get("image/svg+xml", ""))
        join = "\n".join
        return cls(
            cell["cell"],
            cell["source"],
            tuple(cell["tags"]),
            join(filter(None, text)),
            join(filter(None, html)),
            cell["seconds"],
            cell["passed"],
        )


@dataclass(frozen=True)
class Run:
    """One notebook's run: the cells, nbval's report and the CPU seconds of the kernel and of pytest."""

    cells: tuple[Ran, ...]
    code: int
    report: str
    cpu_seconds: float

    def checks(self) -> dict[str, Ran]:
        """Exercise id -> the cell that checks it."""
        return {exercise: cell for cell in self.cells for exercise in checked_ids(cell.source)}


def notebook_paths() -> list[Path]:
    return sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))


def checked_ids(source: str) -> list[str]:
    """The ids of the exercises that a cell checks: `check("03.translate", translate)` -> 03.translate."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        call.args[0].value
        for call in calls
        if isinstance(call.func, ast.Name)
        and call.func.id == "check"
        and call.args
        and isinstance(call.args[0], ast.Constant)
    ]


def run_under_nbval(notebook: Path, folder: Path, cell_timeout: float = 240, **environment: str) -> Run:
    """Runs `notebook` where it lies; everything written goes to `folder`."""
    notebook = notebook.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "outputs.json"
    command = [
        sys.executable, "-m", "pytest", "--nbval-lax", "--nbval-current-env",
        f"--nbval-cell-timeout={cell_timeout}", "-p", "keep_outputs", "-p", "no:cacheprovider",
        "-p", "no:xdist", "-c", os.devnull, f"--rootdir={notebook.parent}", "-q", "--color=no", str(notebook),
    ]  # fmt: skip
    before = _children_cpu()
    done = subprocess.run(
        command,
        env=_environment(folder, kept) | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
    )
    cells = json.loads(kept.read_text()) if kept.exists() else []
    return Run(
        tuple(Ran.from_json(cell) for cell in cells),
        done.returncode,
        (done.stdout + done.stderr)[-6000:],
        _children_cpu() - before,
    )


def with_solutions(notebook: Path, folder: Path, solution_of) -> Path:
    """A copy of `notebook` in which each stub cell holds `solution_of(exercise_id)`."""
    content = nbformat.read(notebook, as_version=4)
    for cell in content.cells:
        for exercise in exercise_ids(cell):
            cell.source = solution_of(exercise)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / notebook.name
    nbformat.write(content, path)
    return path


def exercise_ids(cell) -> list[str]:
    """The ids in a cell's `exercise:` tags."""
    prefix = "exercise:"
    return [tag.removeprefix(prefix) for tag in cell.metadata.get("tags", []) if tag.startswith(prefix)]


def _environment(folder: Path, kept: Path) -> dict[str, str]:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "JUPYTER"))
    }
    return {
        **inherited,
        "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "KVLAB_KEEP_OUTPUTS": str(kept),
        "KVLAB_HOME": str(folder / "learner"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "IPYTHONDIR": str(folder / "ipython"),
        "OMP_NUM_THREADS": "1",
    }


def _children_cpu() -> float:
    used = os.times()
    return used.children_user + used.children_system
