"""A small script of operations on any allocator: admit A 4; append A 2; release A."""

from __future__ import annotations

from typing import NamedTuple

from kvlab.allocator import Allocator


class Step(NamedTuple):
    """One operation. `tokens`: of the prompt, or how many to append. `output`: tokens still to come."""

    kind: str
    request_id: str
    tokens: int = 0
    output: int = 0

    def __str__(self) -> str:
        numbers = [n for n in (self.tokens, self.output) if n]
        return " ".join([self.kind, self.request_id, *map(str, numbers)])


def parse(script: str) -> list[Step]:
    """The operations in a script, separated by semicolons or line ends. ValueError that names a bad one."""
    steps = [_step(part) for part in script.replace("\n", ";").split(";") if part.strip()]
    if not steps:
        raise ValueError("the script holds no operation; write for example: admit A 4; release A")
    return steps


def _step(text: str) -> Step:
    kind, *rest = text.split()
    numbers = rest[1:]
    most = {"admit": 2, "append": 1, "release": 0}.get(kind)
    if most is None:
        raise ValueError(f"{text.strip()!r} is no operation; there are admit, append and release")
    fewest = 1 if kind == "admit" else 0
    good = rest and fewest <= len(numbers) <= most and all(n.isdecimal() and int(n) > 0 for n in numbers)
    if not good:
        forms = {"admit": "admit A 4", "append": "append A 2", "release": "release A"}
        raise ValueError(f"{text.strip()!r} cannot be read; write it like {forms[kind]}")
    default = [1] if kind == "append" and not numbers else []
    return Step(kind, rest[0], *(int(n) for n in numbers or default))


def carry_out(step: Step, allocator: Allocator) -> None:
    """One operation on an allocator. MemoryError when it does not fit; KeyError or ValueError for "
    "nonsense."""
    if step.kind == "admit":
        allocator.admit(step.request_id, step.tokens, step.output)
    elif step.kind == "release":
        allocator.release(step.request_id)
    else:
        for _ in range(step.tokens):
            allocator.append(step.request_id)


def largest_hole(allocator: Allocator) -> int:
    """Free slots that one request can have: in one piece, or all of them where pieces do not matter."""
    if hasattr(allocator, "holes"):
        return max((size for _, size in allocator.holes()), default=0)
    return allocator.account().external
