"""What an exercise's check is given: the learner's answer, called under guard and compared in one sentence.

A sentence reads: the input, what was expected and why, what came back.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from kvlab.exercises import guard
from kvlab.exercises.exercise import Refused


class Trial:
    """One attempt at an exercise: `answer` is what the learner passed to `check`, `name` its name."""

    def __init__(self, answer: Any, name: str):
        self.answer, self.name = answer, name

    def call(self, *args: Any, given: str, function: Callable | None = None) -> Any:
        """Call the answer (or `function`) on these arguments; Refused if it raises, hangs or edits them."""
        outcome = self._run(function or self.answer, args, given)
        if not outcome.ok:
            raise Refused(f"{given}: your {self.name} {outcome.telling()}.")
        return outcome.value

    def equal(self, got: Any, expected: Any, *, given: str, because: str) -> None:
        """Refused unless both are the same; lists and tuples, numpy and plain numbers count as the same."""
        if same(got, expected):
            return
        forgot = " (is the `return` missing?)" if got is None or got is Ellipsis else ""
        raise Refused(f"{given}: expected {show(expected)}, because {because}; got {show(got)}{forgot}.")

    def gives(self, *args: Any, expected: Any, given: str, because: str) -> None:
        """Call the answer and compare."""
        outcome = self._run(self.answer, args, given)
        if not outcome.ok:
            raise Refused(
                f"{given}: expected {show(expected)}, because {because}; your {self.name} "
                f"{outcome.telling()}."
            )
        self.equal(outcome.value, expected, given=given, because=because)

    def raises(
        self,
        kind: type[BaseException],
        *args: Any,
        given: str,
        because: str,
        function: Callable | None = None,
    ) -> BaseException:
        """The exception of this kind that the answer must raise; Refused if it returns or raises another."""
        outcome = self._run(function or self.answer, args, given)
        expected = f"{given}: expected {_article(kind.__name__)}, because {because}"
        if outcome.ok:
            came = "nothing was raised" if outcome.value is None else f"got {show(outcome.value)}"
            raise Refused(f"{expected}; {came}.")
        if not isinstance(outcome.error, kind):
            raise Refused(f"{expected}; your {self.name} {outcome.telling()}.")
        return outcome.error

    def _run(self, function: Callable, args: tuple, given: str) -> guard.Outcome:
        before = copy.deepcopy(args)
        outcome = guard.run(function, *args)
        for number, (now, then) in enumerate(zip(args, before, strict=True), start=1):
            if (isinstance(then, list | dict | set) or hasattr(then, "dtype")) and not same(now, then):
                raise Refused(
                    f"{given}: your {self.name} changed its argument number {number} from {show(then)} "
                    "to "
                    f"{show(now)}; only read it, the caller still needs it."
                )
        return outcome


def plain(value: Any) -> Any:
    """Slots as (block, offset), arrays and tensors as lists, numpy numbers as Python's, lists as tuples."""
    if hasattr(value, "block") and hasattr(value, "offset"):
        return plain((value.block, value.offset))
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def same(got: Any, expected: Any) -> bool:
    """Equal once plain, and whole where the other is whole: slot 2.0 is not slot 2, True is not 1."""
    try:
        return _same(plain(got), plain(expected))
    except Exception:  # whatever a learner's object does when it is compared
        return False


def _same(got: Any, expected: Any) -> bool:
    if isinstance(expected, tuple):
        return isinstance(got, tuple) and len(got) == len(expected) and all(map(_same, got, expected))
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and got.keys() == expected.keys()
            and all(_same(got[key], expected[key]) for key in expected)
        )
    numbers = (bool, int, float)
    if isinstance(expected, numbers) and type(got) is not type(expected):
        return False
    return bool(got == expected)


def show(value: Any) -> str:
    """A value as a sentence shows it, never longer than a line or two."""
    if hasattr(value, "block") and hasattr(value, "offset"):
        value = (value.block, value.offset)
    if hasattr(value, "tolist"):
        value = value.tolist()
    try:
        text = repr(value)
    except BaseException:
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= 160 else text[:157] + "..."


def _article(word: str) -> str:
    return ("an " if word[0] in "AEIOU" else "a ") + word
