"""Find exercises and predictions by id.

A folder `nNN_topic` holds the exercises of notebook NN: its `__init__` names the notebook (TITLE,
NOTEBOOK) and its exercises in learning order (EXERCISES); each is a module of that name with one
`exercise`. Its optional module `predictions` holds PREDICTIONS.
"""

from __future__ import annotations

import difflib
import pkgutil
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from kvlab.exercises.exercise import Exercise


class UnknownId(LookupError):
    """No exercise or prediction has this id; the message suggests the nearest one."""


@dataclass(frozen=True)
class Prediction:
    """A question asked before the reveal.

    right: a number, a tuple of numbers, or one of `choices`.  why: a sentence.
    """

    id: str
    question: str
    right: object
    why: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Folder:
    """The exercises of one notebook."""

    number: str
    package: str
    title: str
    notebook: str
    exercise_ids: tuple[str, ...]
    prediction_ids: tuple[str, ...]


@cache
def folders() -> tuple[Folder, ...]:
    """Every notebook that has exercises or predictions, in order."""
    import kvlab.exercises as root

    names = sorted(m.name for m in pkgutil.iter_modules(root.__path__) if m.ispkg and m.name[:1] == "n")
    return tuple(_folder(f"{root.__name__}.{name}", name[1:3]) for name in names if name[1:3].isdigit())


def _folder(package: str, number: str) -> Folder:
    module = import_module(package)
    return Folder(
        number,
        package,
        module.TITLE,
        module.NOTEBOOK,
        tuple(f"{number}.{name}" for name in module.EXERCISES),
        tuple(_predictions(package)),
    )


@cache
def _predictions(package: str) -> dict[str, Prediction]:
    if all(m.name != "predictions" for m in pkgutil.iter_modules(import_module(package).__path__)):
        return {}
    listed = import_module(f"{package}.predictions").PREDICTIONS
    return {prediction.id: prediction for prediction in listed}


def exercise_ids() -> list[str]:
    return [name for folder in folders() for name in folder.exercise_ids]


def prediction_ids() -> list[str]:
    return [name for folder in folders() for name in folder.prediction_ids]


def get(id: object) -> Exercise:
    """The exercise of this id; UnknownId with a suggestion otherwise."""
    for folder in folders():
        if id in folder.exercise_ids:
            return import_module(f"{folder.package}.{id.partition('.')[2]}").exercise
    raise UnknownId(_unknown("exercise", id, exercise_ids()))


def get_prediction(id: object) -> Prediction:
    """The prediction of this id; UnknownId with a suggestion otherwise."""
    for folder in folders():
        if id in folder.prediction_ids:
            return _predictions(folder.package)[id]
    raise UnknownId(_unknown("prediction", id, prediction_ids()))


def _unknown(what: str, id: object, known: list[str]) -> str:
    if not isinstance(id, str):
        return f'The first argument is the id of the {what}, text such as "{known[0]}"; this is {id!r}.'
    near = difflib.get_close_matches(id, known, n=1, cutoff=0.4)
    if near:
        return f'No {what} is called "{id}"; did you mean "{near[0]}"?'
    return f'No {what} is called "{id}". There are: {", ".join(known)}.'


def define(exercise: Exercise, source: str, needed: str = "solution") -> object:
    """Run `source` as a learner's cell would, after what the exercise needs; returns the answer.

    needed: which text of the exercises before it to use, "solution" or "stub".
    """
    from kvlab.exercises.sources import execute

    namespace: dict = {"__name__": "kvlab_answer"}
    for id in exercise.needs:
        before = get(id)
        execute(before.setup + "\n" + getattr(before, needed), namespace)
    execute(exercise.setup + "\n" + source, namespace)
    return namespace[exercise.name]
