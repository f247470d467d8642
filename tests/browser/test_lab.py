"""A learner's session in JupyterLab, in a real browser: run, step, predict, type an answer, see it pass."""

import pytest

from kvlab.exercises import get

from .server import NOTEBOOKS

NUMBERS = [path.name[:2] for path in sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))]


def _name(number: str) -> str:
    return next(NOTEBOOKS.glob(f"{number}_*.ipynb")).name


def _run(lab, number: str, timeout: float = 240):
    lab.open(_name(number))
    cells = lab.run_all(timeout)
    assert lab.errors() == []
    return cells


def _stepper(lab, cells):
    """The first figure of the notebook, and the cell that it is in."""
    for cell in cells:
        if cell.code and lab.cell(cell).locator(".kvlab-stepper").count():
            figure = lab.figure(cell)
            figure.svg.scroll_into_view_if_needed()
            return figure
    raise AssertionError("no figure in this notebook")


def _focused(lab) -> str:
    return lab.page.evaluate("() => document.activeElement.textContent.trim()")


@pytest.mark.parametrize("number", ["03", "04"])
def test_a_learners_session(lab, number):
    cells = _run(lab, number)
    _steps_by_button(_stepper(lab, cells))
    _steps_by_keyboard(lab, _stepper(lab, cells))
    _solves_an_exercise(lab, cells)
    _looks(lab, number)


def _steps_by_button(figure):
    start, before = figure.step, figure.telling
    figure.button("Next").click()
    figure.wait_step(start + 1)
    after = figure.wait_telling_other_than(before)
    figure.button("Back").click()
    figure.wait_step(start)
    assert figure.wait_telling_other_than(after) == before
    figure.button("First").click()
    figure.wait_step(0)


def _steps_by_keyboard(lab, figure):
    """Tab from button to button and press; the focus stays where it was, also at the last step."""
    press = lab.page.keyboard.press
    figure.button("First").focus()
    press("Tab")
    press("Tab")
    assert _focused(lab) == "Next"
    press("Enter")
    figure.wait_step(1)
    press("Enter")
    figure.wait_step(2)
    press("Shift+Tab")
    press("Space")
    figure.wait_step(1)
    figure.button("Last").focus()
    press("Enter")
    last = figure.wait_step_other_than(1)
    press("Shift+Tab")
    press("Enter")
    figure.wait_telling("This is the last step.")
    assert figure.step == last
    assert _focused(lab) == "Next", "a press at the last step moved the focus"


def _solves_an_exercise(lab, cells):
    tag = next(tag for cell in cells for tag in cell.tags if tag.startswith("exercise:"))
    exercise = get(tag.removeprefix("exercise:"))
    check = lab.find(f'check("{exercise.id}"')
    assert "not attempted" in check.text
    stub = lab.find("def ", tag=tag)
    lab.type_into(stub, exercise.wrong[0].source)
    lab.run_cell(stub)
    refused = lab.run_cell(lab.find(f'check("{exercise.id}"'))
    assert exercise.wrong[0].says in refused.text
    stub = lab.find("def ", tag=tag)
    lab.type_into(stub, exercise.solution)
    lab.run_cell(stub)
    passed = lab.run_cell(lab.find(f'check("{exercise.id}"'))
    assert f"{exercise.id} · passed" in passed.text


def _looks(lab, number):
    for theme in ("light", "dark"):
        lab.theme(theme)
        assert lab.screenshot(f"{number}-{theme}").stat().st_size > 50_000
    lab.theme("light")


def test_start_here(lab):
    cells = _run(lab, "00")
    asked = lab.find('predict("00.blocks"')
    form = lab.cell(asked).locator(".kvlab-predict")
    form.locator("input[type=text]").fill("2")
    form.locator("button", has_text="Keep my guess").click()
    lab.page.wait_for_selector(".kvlab-predict >> text=Kept: 2")
    assert "You predicted 2" in lab.run_cell(lab.find('reveal("00.blocks"')).text
    _steps_by_button(_stepper(lab, cells))
    _solves_an_exercise(lab, cells)
    board = lab.run_cell(lab.find("progress()"))
    assert "1 of 1 exercises passed" in board.text
    _looks(lab, "00")


def test_serve_a_model(lab, model_path):
    cells = _run(lab, "13", timeout=400)
    assert any("A The capital of France is Paris." in cell.text for cell in cells)
    stream = lab.find("AnswerStream(")
    figure = lab.figure(stream)
    answers = lab.cell(stream).locator(".kvlab-answers")
    assert "The capital of France is Paris. ■" in answers.inner_text()
    figure.button("First").click()
    figure.wait_step(0)
    assert "Paris" not in answers.inner_text()
    figure.button("Next").click()
    figure.wait_step(1)
    assert "The" in answers.inner_text()
    figure.button("Last").click()
    figure.wait_step(24)
    figure.button("Back").click()
    figure.wait_step(23)
    _looks(lab, "13")


def test_decode_timing(lab):
    """A live run is started and stopped by its buttons, and keeps what it measured."""
    _run(lab, "10")
    explorer = lab.cell(lab.find("TimingExplorer(measured"))
    telling = explorer.locator(".kvlab-telling")
    explorer.locator("button.kvlab-start").click()
    started = lab.poll(telling.inner_text, lambda text: text.startswith("Measur"), 30)
    assert started.startswith("Measur"), started
    explorer.locator("button.kvlab-stop").click()
    ended = lab.poll(telling.inner_text, lambda text: "points measured." in text, 60)
    assert "points measured." in ended, ended
    _looks(lab, "10")


@pytest.mark.parametrize("number", sorted(set(NUMBERS) - {"00", "03", "04", "10", "13"}))
def test_every_other_notebook(lab, number):
    cells = _run(lab, number)
    _steps_by_button(_stepper(lab, cells))
    _looks(lab, number)
