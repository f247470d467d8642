"""Every exercise of every notebook: solutions pass, stubs are no attempt, known mistakes are refused."""

import pkgutil
from importlib import import_module

import pytest

from kvlab.exercises import exercise_ids, get
from kvlab.exercises.asking import is_right, keep
from kvlab.exercises.registry import define, folders, get_prediction, prediction_ids

from .judging import judged

IDS = exercise_ids()
MISTAKES = [(id, number) for id in IDS for number in range(len(get(id).wrong))]


def _name(value):
    return get(value[0]).wrong[value[1]].name.replace(" ", "-") if isinstance(value, tuple) else value


@pytest.mark.parametrize("id", IDS)
def test_the_solution_passes(id):
    result = judged(get(id), get(id).solution)
    assert result.state == "passed", result.message


@pytest.mark.parametrize("id", IDS)
def test_the_stub_is_no_attempt(id):
    result = judged(get(id), get(id).stub, needed="stub")
    assert result.state == "not attempted", result.message


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: f"{m[0]}-{_name(m)}")
def test_each_known_mistake_is_refused_with_its_own_sentence(mistake):
    id, number = mistake
    wrong = get(id).wrong[number]
    result = judged(get(id), wrong.source)
    assert result.state == "failed", result.message
    assert wrong.says in result.message


@pytest.mark.parametrize("id", IDS)
def test_an_exercise_has_what_the_house_rules_ask(id):
    exercise = get(id)
    assert exercise.id == id and exercise.title
    assert 2 <= len(exercise.hints) <= 3
    assert len({wrong.name for wrong in exercise.wrong}) == len(exercise.wrong) >= 3
    assert all(len(line) <= 110 for line in exercise.stub.splitlines())
    if exercise.kind == "function":
        contract = define(exercise, exercise.stub, needed="stub").__doc__
        assert contract and len(contract.split()) >= 20


def test_every_module_with_an_exercise_is_listed():
    for folder in folders():
        package = import_module(folder.package)
        modules = [
            import_module(f"{folder.package}.{m.name}") for m in pkgutil.iter_modules(package.__path__)
        ]
        found = {module.exercise.id for module in modules if hasattr(module, "exercise")}
        assert found == set(folder.exercise_ids)
        assert folder.notebook.startswith(f"{folder.number}_")


@pytest.mark.parametrize("id", prediction_ids())
def test_the_right_prediction_is_right(id):
    prediction = get_prediction(id)
    assert is_right(prediction, prediction.right) and is_right(prediction, str(prediction.right))
    assert keep(prediction, prediction.right).startswith("Kept")
    others = [choice for choice in prediction.choices if choice != prediction.right]
    assert not is_right(prediction, "") and not any(is_right(prediction, other) for other in others)
    assert prediction.question.strip().endswith("?") and prediction.why.strip().endswith(".")
