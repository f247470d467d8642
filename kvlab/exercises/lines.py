"""Exercises that ask for a few values under given names: each line is judged on its own, in order."""

from __future__ import annotations

from kvlab.exercises.exercise import Refused, Untouched
from kvlab.exercises.trial import Trial, same, show


def judge_lines(trial: Trial, due: dict[str, tuple[object, str]], name: str) -> None:
    """Refused at the first wrong line; Untouched while some are open.

    Args:
        due: line -> (the value it should hold, why).
        name: what the learner calls the dict.
    """
    answer = trial.answer
    if not isinstance(answer, dict) or answer.keys() != due.keys():
        raise Refused(f"keep the lines of `{name}` and fill in their values: {', '.join(due)}.")
    still_open = [line for line in due if answer[line] is None or answer[line] is Ellipsis]
    if len(still_open) == len(due):
        raise Untouched(f"fill in the {len(due)} lines of `{name}`.")
    for line, (value, because) in due.items():
        if line not in still_open and not same(answer[line], value):
            raise Refused(f"{line}: expected {show(value)}, because {because}; got {show(answer[line])}.")
    if still_open:
        raise Untouched(f"right so far; still open: {', '.join(still_open)}.")
