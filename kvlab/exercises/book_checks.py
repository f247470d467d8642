"""Comparing the books of a pool with what they should be after a learner's function has run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvlab.exercises.exercise import Refused
from kvlab.exercises.trial import same, show


def compare_books(
    read: Callable[[], dict[str, Any]], due: dict[str, Any], *, given: str, because: str
) -> None:
    """Refused, naming the part, unless the books that `read()` gives have these parts."""
    try:
        now = read()
    except Exception as error:
        raise Refused(
            f"{given}: afterwards the books cannot be read ({type(error).__name__}: {error})."
        ) from None
    for part, value in due.items():
        if not same(now[part], value):
            raise Refused(
                f"{given}: expected {part} {show(value)} afterwards, because {because}; got "
                f"{show(now[part])}."
            )
