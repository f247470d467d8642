"""The mismatches of a sentinel audit, gathered by slot: what a figure has to say about each."""

import re
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple


class Finding(NamedTuple):
    """One wrong slot (or one token without a slot) and all its mismatches, in the audit's order."""

    block: int | None
    offset: int | None
    request_id: Hashable
    position: int
    mismatches: tuple[Any, ...]

    @property
    def has_slot(self) -> bool:
        """Whether the table led to a slot at all."""
        return self.block is not None

    @property
    def sentence(self) -> str:
        """The first mismatch in words, and how many more records of the slot are wrong."""
        more = len(self.mismatches) - 1
        rest = f", and {more} more record{'s' if more > 1 else ''} of this token" if more else ""
        return f"{self.mismatches[0]}{rest}."

    def wrong_records(self) -> set[tuple[int, int, str]]:
        """(layer, head, "K" or "V") of every wrong record."""
        return {(m.layer, m.head, m.kind) for m in self.mismatches if m.layer is not None}


def gather(mismatches: Iterable[Any]) -> list[Finding]:
    """One finding for each token of each request that is wrong, in the audit's order."""
    slots: dict[tuple, list] = {}
    for m in mismatches:
        slots.setdefault((m.block, m.offset, m.request_id, m.position), []).append(m)
    return [Finding(*key, tuple(found)) for key, found in slots.items()]


def slot_runs(findings: Iterable[Finding], current: Finding | None) -> list[tuple[int, int, int]]:
    """The wrong slots but the current one, neighbours joined: (block, first offset, count)."""
    slots = {(f.block, f.offset) for f in findings if f.has_slot}
    slots -= {(current.block, current.offset)} if current else set()
    runs: list[list[int]] = []
    for block, offset in sorted(slots):
        if runs and runs[-1][0] == block and sum(runs[-1][1:]) == offset:
            runs[-1][2] += 1
        else:
            runs.append([block, offset, 1])
    return [tuple(run) for run in runs]


def content(text: str) -> tuple[str, str] | None:
    """ "A[9]" as ("A", "9"); None for content that names no request."""
    match = re.match(r"(.+)\[(\d+)\]", text)
    return (match[1], match[2]) if match else None
