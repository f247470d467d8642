"""What an exercise is made of, and what checking an answer to it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvlab.exercises.telling import say

PASSED, FAILED, NOT_ATTEMPTED = "passed", "failed", "not attempted"


class Refused(Exception):
    """Raised by an exercise's check: the answer is wrong, and the message is the sentence that says why."""

    def __init__(self, sentence: str, counterexample: str | None = None, factory: Callable | None = None):
        super().__init__(sentence)
        self.counterexample, self.factory = counterexample, factory


class Untouched(Exception):
    """Raised by an exercise's check: nothing to judge yet, and the message says what is still open."""


@dataclass(frozen=True)
class WrongAnswer:
    """A mistake that learners make: `source` is refused with a sentence that contains `says`."""

    name: str
    source: str
    says: str


@dataclass(frozen=True)
class Exercise:
    """One exercise; all sources are Python text that defines the name `answer`.

    id: "NN.name", the name that learners type.
    stub: what the notebook's cell holds; its docstring is the contract.
    hints: markdown, from a nudge to nearly there; the solution follows them as the last hint.
    check: called with a `Trial`; returns a sentence (or None) when the answer is right, raises `Refused`
        if not.
    answer: the name that the sources define; by default the id's second part.
    kind: what the answer is: "function", "class" or "value".
    setup: imports that the sources rely on.  needs: ids of exercises whose answers come before this one.
    """

    id: str
    title: str
    stub: str
    hints: Sequence[str]
    solution: str
    wrong: Sequence[WrongAnswer]
    check: Callable[..., str | None]
    answer: str = ""
    kind: str = "function"
    setup: str = ""
    needs: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The name under which a learner's cell defines the answer."""
        return self.answer or self.id.partition(".")[2]


def edited(source: str, old: str, new: str) -> str:
    """`source` with its one occurrence of `old` replaced: a known-wrong answer as an edit of the solution."""
    if source.count(old) != 1:
        raise ValueError(f"{old!r} occurs {source.count(old)} times in the source; it must occur once.")
    return source.replace(old, new)


@dataclass(frozen=True)
class CheckResult:
    """What `check` returns. Truth value: passed.

    `counterexample` is the text of a script for kvlab.recording.
    """

    id: str
    state: str
    message: str
    counterexample: str | None = None
    factory: Callable[[], Any] | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return self.state == PASSED

    def _ipython_display_(self) -> None:
        """Nothing: the sentence is on the screen already."""

    def stepper(self):
        """The failing sequence on the learner's own object, at its end; None, with a sentence, if none."""
        if self.counterexample is None or self.factory is None:
            say(f"{self.id}: no failing sequence to step through ({self.state}).")
            return None
        from kvlab.exercises import guard
        from kvlab.recording import record
        from kvlab.views import AllocatorStepper, SharingStepper

        manager = self.factory()
        frames = record(self.counterexample, manager, call=guard.call)
        figure = SharingStepper if hasattr(manager, "fork") else AllocatorStepper
        return figure(frames, step=len(frames) - 1)
