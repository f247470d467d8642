"""Keep an answer that passed as text, and load it again for a later notebook."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from kvlab.exercises import guard, store
from kvlab.exercises.exercise import PASSED, Exercise
from kvlab.exercises.registry import UnknownId, define, get
from kvlab.exercises.sources import execute
from kvlab.exercises.standalone import CannotStandAlone, standalone_source
from kvlab.exercises.telling import say


def keepable(exercise: Exercise, answer: Any) -> tuple[str | None, str | None]:
    """(text, None) when the answer stands alone as text and still passes so; (None, a sentence) otherwise."""
    try:
        text = _text_of(exercise, answer)
    except CannotStandAlone as error:
        return None, f"Passed, but {exercise.id} was not kept for later notebooks: {error}."
    from kvlab.exercises.checking import judge

    try:
        again = judge(exercise, _run(exercise, text))
    except Exception as error:
        reason = f"run on its own it raised {type(error).__name__}: {error}"
        return None, f"Passed, but {exercise.id} was not kept for later notebooks: {reason}."
    if again.state != PASSED:
        reason = f"run on its own it gives another result ({again.message})"
        return None, f"Passed, but {exercise.id} was not kept for later notebooks: {reason}"
    return text, None


def load_answer(id: str) -> Any:
    """The learner's own answer that passed; kvlab's solution, with a sentence, when there is none.

    Raises:
        LookupError: no exercise has this id (the message suggests the nearest).
    """
    answer, sentence = stored_answer(id)
    say(sentence)
    return answer


def stored_answer(id: str) -> tuple[Any, str]:
    """What `load_answer` gives, and the sentence that it says."""
    exercise = get(id)
    entry = store.load()["exercises"].get(id, {})
    text = entry.get("source")
    if not isinstance(text, str):
        why = (
            "it passed, but could not be kept"
            if entry.get("state") == PASSED
            else "you have not passed it yet"
        )
        return _solution(exercise), f"This uses kvlab's solution of {id}, not your own: {why}."
    try:
        answer = _run(exercise, text)
    except Exception as error:
        return _solution(exercise), (
            f"This uses kvlab's solution of {id}: your kept answer no longer runs ({type(error).__name__}: "
            f"{error})."
            " Run its check again to keep it anew."
        )
    return answer, f"This uses your own answer to {id}, kept when it passed."


def ready(id: str, answer: Any, *, must_pass: bool = False) -> Any:
    """The learner's answer for the rest of a notebook; while it is a stub, kvlab's solution instead.

    A function that fails its check comes back with a time limit: a loop in it cannot hang the notebook.

    Args:
        must_pass: stand in for an answer that fails its check, too, where a failure would stop the cell.
    """
    from kvlab.exercises.checking import judge
    from kvlab.exercises.exercise import FAILED

    try:
        exercise = get(id)
    except UnknownId as error:
        say(str(error))
        return answer
    state = judge(exercise, answer).state
    if state == PASSED:
        return answer
    if state == FAILED and not must_pass:
        return functools.wraps(answer)(lambda *args: guard.call(answer, *args))
    why = "does not pass yet" if state == FAILED else "is still open"
    say(f"`{exercise.name}` {why}, so this uses kvlab's solution. Come back when yours is ready.")
    return define(exercise, exercise.solution)


def _solution(exercise: Exercise) -> Any:
    return define(exercise, exercise.solution)


def _run(exercise: Exercise, text: str) -> Any:
    namespace: dict = {"__name__": "kvlab_answer"}
    execute(text, namespace)
    return namespace[exercise.name]


def _text_of(exercise: Exercise, answer: Any) -> str:
    parts: dict[str, Callable] | None = getattr(answer, "parts", None)
    if exercise.kind == "class":
        if not parts:
            raise CannotStandAlone("only a class made by `manager_from` can be kept; build yours with it")
        names = ", ".join(f"{method}={function.__name__}" for method, function in parts.items())
        text = standalone_source(list(dict.fromkeys(parts.values())))
        module, maker = getattr(answer, "maker", ("kvlab.exercises", "manager_from"))
        return f"from {module} import {maker}\n{text}\n\n{exercise.name} = {maker}({names})\n"
    text = standalone_source([answer])
    if answer.__name__ != exercise.name:
        text += f"\n\n{exercise.name} = {answer.__name__}\n"
    return text
