"""Scripts of block manager operations, as text that a person can write and as tuples."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple


class Operation(NamedTuple):
    """One call on a manager.

    kind: "append" (request_id, count), "fork" (request_id is the parent, other the child), "release"
    (request_id), "reserve" and "roll back" (batch: pairs of request and count; the second undoes the step).
    """

    kind: str
    request_id: Hashable = None
    count: int = 1
    other: Hashable = None
    batch: tuple[tuple[Hashable, int], ...] = ()


def parse_script(text: str) -> list[Operation]:
    """Operations from text such as "append A; append A 3; fork A C; release B; reserve A 1 B 2".

    Statements are separated by semicolons or new lines; "roll back A 1 B 2" reserves and undoes.

    Raises:
        ValueError: quotes the statement that could not be read and says what would be right.
    """
    statements = [part.split() for line in text.splitlines() for part in line.split(";")]
    return [_parse(words) for words in statements if words]


def _parse(words: list[str]) -> Operation:
    match words:
        case ["append", who]:
            return Operation("append", who)
        case ["append", who, count] if count.isdecimal() and int(count):
            return Operation("append", who, int(count))
        case ["fork", parent, child]:
            return Operation("fork", parent, other=child)
        case ["release", who]:
            return Operation("release", who)
        case ["reserve", *rest] if _is_batch(rest):
            return Operation("reserve", batch=_batch(rest))
        case ["roll", "back", *rest] if _is_batch(rest):
            return Operation("roll back", batch=_batch(rest))
    raise ValueError(
        f"cannot read {' '.join(words)!r}: write append A, append A 3, fork A C, release A, "
        "reserve A 1 B 2 or roll back A 1 B 2, separated by semicolons"
    )


def _is_batch(words: list[str]) -> bool:
    return (
        bool(words) and len(words) % 2 == 0 and all(count.isdecimal() and int(count) for count in words[1::2])
    )


def _batch(words: list[str]) -> tuple[tuple[str, int], ...]:
    return tuple((who, int(count)) for who, count in zip(words[::2], words[1::2], strict=True))
