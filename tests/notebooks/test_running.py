"""Every notebook under nbval: as a learner finds it, and with every exercise solved."""

import nbformat
import pytest

from .running import notebook_paths, run_under_nbval, with_solutions

pytestmark = pytest.mark.parametrize("notebook", notebook_paths(), ids=lambda path: path.stem)


def _code_cells(notebook) -> int:
    return sum(cell.cell_type == "code" for cell in nbformat.read(notebook, as_version=4).cells)


def _run(notebook, folder, record_property):
    run = run_under_nbval(notebook, folder)
    record_property("cpu_seconds", round(run.cpu_seconds, 1))
    print(f"{notebook.name}: {run.cpu_seconds:.1f} s of CPU")
    assert run.code == 0, run.report
    assert len(run.cells) == _code_cells(notebook) and all(cell.passed for cell in run.cells), run.report
    return run


def test_untouched(notebook, tmp_path, record_property):
    run = _run(notebook, tmp_path, record_property)
    assert run.checks(), "the notebook checks nothing"
    for exercise, cell in run.checks().items():
        assert f"{exercise} · not attempted" in cell.text, f"{exercise}: {cell.text}"


def test_solved(notebook, tmp_path, record_property):
    from kvlab.exercises import get

    solved = with_solutions(notebook, tmp_path / "notebooks", lambda exercise: get(exercise).solution)
    run = _run(solved, tmp_path, record_property)
    for exercise, cell in run.checks().items():
        assert f"{exercise} · passed" in cell.text, f"{exercise}: {cell.text}"
