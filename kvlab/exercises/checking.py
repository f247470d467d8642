"""check(id, answer): judge an answer, say one sentence, keep the progress. It never raises."""

from __future__ import annotations

from typing import Any

from kvlab.exercises import store
from kvlab.exercises.exercise import FAILED, NOT_ATTEMPTED, PASSED, CheckResult, Exercise, Refused, Untouched
from kvlab.exercises.registry import UnknownId, get
from kvlab.exercises.sources import is_stub
from kvlab.exercises.telling import say
from kvlab.exercises.trial import Trial, show

_MISSING = object()


def check(id: str, answer: Any = _MISSING) -> CheckResult:
    """Judge the answer to an exercise: `check("03.translate", translate)`.

    Says one sentence: the input, what was expected and why, what came back. Whatever the answer does (an
    exception, an endless loop, edited inputs) becomes that sentence; nothing is thrown at the caller.

    Returns:
        CheckResult; its `state` is "passed", "failed" or "not attempted".
    """
    try:
        exercise = get(id)
    except UnknownId as error:
        result = CheckResult(str(id), NOT_ATTEMPTED, str(error))
    else:
        result = judge(exercise, answer)
        _keep(exercise, answer, result)
    say(f"{result.id} · {result.message}", result.state)
    return result


def judge(exercise: Exercise, answer: Any) -> CheckResult:
    """The result for this answer, without saying or keeping anything."""
    complaint = _wrong_kind(exercise, answer)
    if complaint:
        return CheckResult(exercise.id, NOT_ATTEMPTED, complaint)
    if exercise.kind == "function" and is_stub(answer, exercise.stub):
        return CheckResult(exercise.id, NOT_ATTEMPTED, f"not attempted yet: fill in `{exercise.name}` above.")
    try:
        praise = exercise.check(Trial(answer, f"`{exercise.name}`"))
    except Refused as refusal:
        return CheckResult(exercise.id, FAILED, str(refusal), refusal.counterexample, refusal.factory)
    except Untouched as open_part:
        return CheckResult(exercise.id, NOT_ATTEMPTED, f"not attempted yet: {open_part}")
    except (
        Exception
    ) as error:  # an answer that the check did not foresee, say one whose results cannot be read
        sentence = (
            f"the check could not read what your `{exercise.name}` gave back ({type(error).__name__}: "
            f"{error})."
            " Compare it with the docstring."
        )
        return CheckResult(exercise.id, FAILED, sentence)
    return CheckResult(exercise.id, PASSED, f"passed. {praise}" if praise else "passed.")


def _wrong_kind(exercise: Exercise, answer: Any) -> str | None:
    """A sentence when the second argument is not the kind of thing that this exercise asks for."""
    if answer is _MISSING:
        return f'pass your answer too: check("{exercise.id}", {exercise.name}).'
    if answer is None or answer is Ellipsis:
        return f"not attempted yet: fill in `{exercise.name}` above."
    if exercise.kind == "function" and (not callable(answer) or isinstance(answer, type)):
        return (
            f"this wants your function itself, without calling it: "
            f'check("{exercise.id}", {exercise.name}); it got {show(answer)}.'
        )
    if exercise.kind == "class" and not callable(answer):
        return (
            f"this wants your class itself, not an object made from it: "
            f'check("{exercise.id}", {exercise.name}); it got {show(answer)}.'
        )
    return None


def _keep(exercise: Exercise, answer: Any, result: CheckResult) -> None:
    if result.state == NOT_ATTEMPTED:
        return
    kept = None
    if result.state == PASSED and exercise.kind != "value":
        from kvlab.exercises.answers import keepable

        kept, complaint = keepable(exercise, answer)
        if complaint:
            say(complaint)

    def change(data: dict) -> None:
        entry = data["exercises"].setdefault(exercise.id, {"state": FAILED, "tries": 0})
        entry["tries"] = int(entry.get("tries", 0)) + 1
        if result.state == PASSED:
            entry.update(state=PASSED, at=store.now())
            if kept is not None:
                entry["source"] = kept

    store.update(change)
