"""Every notebook under nbval: as a learner finds it, and with every exercise solved."""

import nbformat
import pytest

from .running import notebook_paths, run_under_nbval, with_solutions

everywhere = pytest.mark.parametrize("notebook", notebook_paths(), ids=lambda path: path.stem)


def _code_cells(notebook) -> int:
    return sum(cell.cell_type == "code" for cell in nbformat.read(notebook, as_version=4).cells)


def _run(notebook, folder, record_property, **environment):
    run = run_under_nbval(notebook, folder, **environment)
    record_property("cpu_seconds", round(run.cpu_seconds, 1))
    print(f"{notebook.name}: {run.cpu_seconds:.1f} s of CPU")
    assert run.code == 0, run.report
    assert len(run.cells) == _code_cells(notebook) and all(cell.passed for cell in run.cells), run.report
    return run


def _run_solved(notebook, folder, record_property):
    from kvlab.exercises import get

    solved = with_solutions(notebook, folder / "notebooks", lambda id: get(id).solution)
    run = _run(solved, folder, record_property)
    for exercise, cell in run.checks().items():
        assert f"{exercise} · passed" in cell.text, f"{exercise}: {cell.text}"
    return run


@everywhere
def test_untouched(notebook, tmp_path, record_property):
    run = _run(notebook, tmp_path, record_property)
    assert run.checks(), "the notebook checks nothing"
    for exercise, cell in run.checks().items():
        assert f"{exercise} · not attempted" in cell.text, f"{exercise}: {cell.text}"


# 04 and 13 are solved together, below.
@pytest.mark.parametrize(
    "notebook",
    [path for path in notebook_paths() if path.name[:2] not in ("04", "13")],
    ids=lambda path: path.stem,
)
def test_solved(notebook, tmp_path, record_property):
    _run_solved(notebook, tmp_path, record_property)


def test_the_manager_of_04_serves_the_model_of_13(model_path, tmp_path, record_property):
    """One learner's folder: what passes in 04 is what hands out the blocks in 13."""
    notebooks = {path.name[:2]: path for path in notebook_paths()}
    _run_solved(notebooks["04"], tmp_path, record_property)
    run = _run_solved(notebooks["13"], tmp_path, record_property)
    text = "\n".join(cell.text for cell in run.cells)
    assert "This uses your own answer to 04.manager" in text
    assert text.count("A The capital of France is Paris.") == 2


def test_13_goes_on_without_the_model(tmp_path, record_property):
    """One sentence says why; a stand-in then goes through every cell."""
    notebook = next(path for path in notebook_paths() if path.name.startswith("13"))
    run = _run(notebook, tmp_path, record_property, KVLAB_MODEL=str(tmp_path / "nowhere.gguf"))
    told = [cell for cell in run.cells if "nowhere.gguf" in cell.text]
    assert told[0].id == "load" and "stands in" in told[0].text


def test_an_error_in_a_cell_is_found(tmp_path):
    cells = [nbformat.v4.new_code_cell(source) for source in ("x = 1", "x / 0", "print(x)")]
    path = tmp_path / "99_broken.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    run = run_under_nbval(path, tmp_path / "run")
    assert run.code == 1
    assert [cell.passed for cell in run.cells] == [True, False, True]
    assert "ZeroDivisionError" in run.report and run.cells[2].text.strip() == "1"
