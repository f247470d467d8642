"""What the notebooks show of an exercise is what the exercise says: its stub, and a solution that passes."""

import re
from pathlib import Path

import nbformat
import pytest

from kvlab.exercises import get
from kvlab.exercises.registry import folders

from .judging import judged

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
IN_NOTEBOOKS = [
    (folder.notebook, id) for folder in folders() for id in folder.exercise_ids if folder.notebook is not None
]


def _cells(notebook):
    return nbformat.read(NOTEBOOKS / notebook, as_version=4).cells


@pytest.mark.parametrize(("notebook", "id"), IN_NOTEBOOKS)
def test_one_cell_holds_the_stub(notebook, id):
    stubs = [cell.source for cell in _cells(notebook) if f"exercise:{id}" in cell.metadata.get("tags", [])]
    assert [stub.strip() for stub in stubs] == [get(id).stub.strip()]


@pytest.mark.parametrize(("notebook", "id"), IN_NOTEBOOKS)
def test_the_last_hint_after_it_is_a_solution_that_passes(notebook, id):
    cells = _cells(notebook)
    place = next(i for i, cell in enumerate(cells) if f"exercise:{id}" in cell.metadata.get("tags", []))
    hints = next(cell.source for cell in cells[place:] if "<details>" in cell.source)
    folds = re.findall(r"<details>.*?</details>", hints, flags=re.DOTALL)
    assert len(folds) == len(get(id).hints) + 1
    source = re.search(r"```python\n(.*?)```", folds[-1], flags=re.DOTALL).group(1)
    result = judged(get(id), source)
    assert result.state == "passed", result.message


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.number)
def test_every_prediction_is_asked_and_revealed(folder):
    sources = "\n".join(cell.source for cell in _cells(folder.notebook) if cell.cell_type == "code")
    for id in folder.prediction_ids:
        assert 0 <= sources.find(f'predict("{id}"') < sources.find(f'reveal("{id}"'), id
