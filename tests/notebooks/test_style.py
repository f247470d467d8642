"""House rules of the notebooks, read from the files; nothing is run."""

import ast
import re
import subprocess
import sys

import nbformat
import pytest

from .running import NOTEBOOKS, checked_ids, exercise_ids, notebook_paths

MAX_WORDS = 110
MAX_LINES = 20
KNOWN_TAGS = re.compile(
    r"exercise:\d\d\.\w+|nbval-(check|ignore)-output|nbval-skip|nbval-raises-exception|raises-exception"
)


@pytest.fixture(params=notebook_paths(), ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def _code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _markdown(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "markdown"]


def _names_called(notebook) -> set[str]:
    calls = (n for c in _code(notebook) for n in ast.walk(ast.parse(c.source)) if isinstance(n, ast.Call))
    return {getattr(call.func, "id", getattr(call.func, "attr", "")) for call in calls}


def test_there_are_notebooks():
    assert {path.name[:2] for path in notebook_paths()} >= {"00", "03", "04", "13"}


def test_valid_with_stable_ids(notebook):
    assert (notebook.nbformat, notebook.nbformat_minor) >= (4, 5)
    nbformat.validate(notebook)
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)


def test_outputs_are_stripped(notebook):
    for cell in _code(notebook):
        assert not cell.outputs and cell.execution_count is None, f"cell {cell.id} has outputs"
    assert "widgets" not in notebook.metadata


def test_kernel_is_python3(notebook):
    assert notebook.metadata.kernelspec.name == "python3"


def test_text_between_cells_is_short(notebook):
    for cell in _markdown(notebook):
        text = re.sub(r"<details>.*?</details>|```.*?```", "", cell.source, flags=re.DOTALL)
        words = len(re.findall(r"\w[\w'-]*", text))
        assert words <= MAX_WORDS, f"cell {cell.id}: {words} words"


def test_code_cells_are_short(notebook):
    for cell in _code(notebook):
        lines = len(cell.source.splitlines())
        assert lines <= MAX_LINES, f"cell {cell.id}: {lines} lines"


def test_tags_are_known(notebook):
    for cell in notebook.cells:
        for tag in cell.metadata.get("tags", []):
            assert KNOWN_TAGS.fullmatch(tag), f"cell {cell.id}: tag {tag!r}"


def test_rhythm(notebook, path):
    """Predict, step, build, check and what to keep, in every notebook; 00 keeps nothing."""
    called = _names_called(notebook)
    imported = " ".join(cell.source for cell in _code(notebook))
    assert "predict" in called
    assert "check" in called
    assert "kvlab.views" in imported
    if not path.name.startswith("00"):
        assert any(re.search(r"^\W*Keep\b", cell.source, re.MULTILINE) for cell in _markdown(notebook))


def test_predictions_are_asked_before_they_are_judged(notebook):
    calls = [
        (node.args[0].value, any(keyword.arg == "answer" for keyword in node.keywords))
        for cell in _code(notebook)
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "predict"
    ]
    asked = set()
    for prediction, judged in calls:
        assert not judged or prediction in asked, f"{prediction} is judged before it is asked"
        asked.add(prediction)


def test_every_stub_is_checked_after_it(notebook):
    open_stubs = []
    for cell in _code(notebook):
        for exercise in checked_ids(cell.source):
            if exercise in open_stubs:
                open_stubs.remove(exercise)
        open_stubs += exercise_ids(cell)
    assert not open_stubs, f"no check follows the stubs of {open_stubs}"


def test_stubs_are_those_of_the_exercises(notebook):
    from kvlab.exercises import get

    for cell in _code(notebook):
        for exercise in exercise_ids(cell):
            assert cell.source.strip() == get(exercise).stub.strip(), f"the stub of {exercise} has drifted"


def test_links_resolve(notebook):
    for cell in _markdown(notebook):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", cell.source):
            assert (NOTEBOOKS / target).exists(), f"cell {cell.id} links to {target}"


def test_start_here_names_every_notebook():
    start, *others = notebook_paths()
    text = start.read_text(encoding="utf-8")
    missing = [path.name for path in others if f"({path.name})" not in text]
    assert not missing, f"notebook 00 does not link to {missing}: add them under Where to go next"


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=["lint", "format"])
def test_ruff(command):
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *command, "--no-cache", str(NOTEBOOKS)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
