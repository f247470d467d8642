"""Exercises whose answer is a small dict filled in by hand."""

from __future__ import annotations

from collections.abc import Mapping

from kvlab.exercises.exercise import Refused, Untouched
from kvlab.exercises.trial import Trial, same, show


def check_lines(trial: Trial, name: str, due: Mapping[str, tuple[object, str]]) -> None:
    """Refused at the first wrong line; Untouched while lines are open. due: line -> (value, why)."""
    if not isinstance(trial.answer, dict) or trial.answer.keys() != due.keys():
        raise Refused(f"keep the lines of `{name}` and fill in their values: {', '.join(due)}.")
    open_lines = [line for line in due if trial.answer[line] is None or trial.answer[line] is Ellipsis]
    if len(open_lines) == len(due):
        raise Untouched(f"fill in the lines of `{name}`.")
    for line, (value, because) in due.items():
        if line not in open_lines and not same(trial.answer[line], value):
            raise Refused(
                f"{line}: expected {show(value)}, because {because}; got {show(trial.answer[line])}."
            )
    if open_lines:
        raise Untouched(f"right so far; still open: {', '.join(open_lines)}.")
