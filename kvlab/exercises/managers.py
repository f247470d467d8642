"""What a manager is put through that a learner put together from functions: thousands of operations."""

from __future__ import annotations

from kvlab.exercises.exercise import Refused, Untouched
from kvlab.exercises.sources import is_stub
from kvlab.exercises.state_machine import Search
from kvlab.exercises.trial import Trial


def check_manager(trial: Trial, required: tuple[str, ...], none_found: str) -> str:
    """`none_found`, unless some sequence of operations goes wrong.

    Args:
        required: the methods that the class must have; with "fork" among them, or when it has one, requests
            are forked, too.

    Raises:
        Untouched: one of its functions is still a stub. Refused: a method is missing, or with the shortest
        sequence that goes wrong, to step through.
    """
    make = trial.answer
    for name, function in getattr(make, "parts", {}).items():
        if is_stub(function):
            raise Untouched(f"`{name}` is still open.")
    missing = [name for name in required if not hasattr(make, name)]
    if missing:
        raise Refused(f"your class has no {' and no '.join(missing)}; pass them to `manager_from`.")
    search = Search(lambda *size: make(*size), batch=hasattr(make, "append"), fork=hasattr(make, "fork"))
    finding = search.shortest()
    if finding is None:
        return none_found
    raise Refused(
        finding.telling(),
        counterexample=finding.script,
        factory=lambda: make(finding.num_blocks, finding.block_size),
    )
