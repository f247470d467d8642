"""Judge a call, and name the mistake when what came back is what a known mistake gives."""

from __future__ import annotations

from typing import Any

from kvlab.exercises.exercise import Refused
from kvlab.exercises.trial import Trial, same, show


def gives(
    trial: Trial, *args: Any, expected: Any, given: str, because: str, mistakes: dict[str, Any] | None = None
) -> None:
    """Like `trial.gives`; `mistakes` maps a sentence without its dot to the value of that mistake."""
    got = trial.call(*args, given=given)
    for sentence, value in (mistakes or {}).items():
        if same(got, value) and not same(got, expected):
            raise Refused(
                f"{given}: expected {show(expected)}, because {because}; got {show(got)}: {sentence}."
            )
    trial.equal(got, expected, given=given, because=because)
