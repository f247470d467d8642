"""A pad of paper over a block manager: each slot holds one character, so that a wrong slot can be read."""

from __future__ import annotations

from itertools import count
from typing import Any

from kvlab.block_manager import BlockManager


class Pad:
    """Requests are lines of text; every character is one token in one slot.

    Args:
        manager: any manager with append_slot, fork, release and block_table; 8 blocks of 4 by default.
    """

    def __init__(self, manager: Any = None):
        self.manager = BlockManager(8, 4) if manager is None else manager
        self._slots: dict[tuple[int, int], str] = {}
        self._lengths: dict[str, int] = {}

    def write(self, request_id: str, text: str) -> None:
        """Append the text, one slot a character; a copy is carried out before anything is written."""
        for character in text:
            block, offset, *source = self.manager.append_slot(request_id)
            if source and source[0] is not None:
                self.copy(source[0], block, offset)
            self._slots[block, offset] = character
            self._lengths[request_id] = self._lengths.get(request_id, 0) + 1

    def copy(self, source: int, destination: int, num_slots: int) -> None:
        """The first `num_slots` characters of one block, copied to another."""
        for offset in range(num_slots):
            self._slots[destination, offset] = self._slots[source, offset]

    def fork(self, parent_id: str, child_id: str) -> None:
        self.manager.fork(parent_id, child_id)
        self._lengths[child_id] = self._lengths[parent_id]

    def table(self, request_id: str) -> list[int]:
        """The request's block table."""
        return list(self.manager.block_table(request_id))

    def read(self, request_id: str) -> str:
        """The request's text, read back through its block table; "?" where nothing was written."""
        table, size = self.table(request_id), self.manager.block_size
        places = (divmod(position, size) for position in range(self._lengths[request_id]))
        return "".join(self._slots.get((table[block], offset), "?") for block, offset in places)


class CopiesAtOnce(Pad):
    """A fork that copies everything: right to read, and nothing is shared."""

    def fork(self, parent_id: str, child_id: str) -> None:
        self.write(child_id, self.read(parent_id))


class WritesInPlace(Pad):
    """A fork without copy-on-write: both go on in the shared block."""

    def __init__(self):
        super().__init__(_NeverCopies())


class _NeverCopies:
    block_size = 4

    def __init__(self):
        self._tables: dict[str, list[int]] = {}
        self._lengths: dict[str, int] = {}
        self._blocks = count()

    def append_slot(self, request_id: str) -> tuple[int, int]:
        table = self._tables.setdefault(request_id, [])
        length = self._lengths.get(request_id, 0)
        if length == len(table) * self.block_size:
            table.append(next(self._blocks))
        self._lengths[request_id] = length + 1
        return table[length // self.block_size], length % self.block_size

    def fork(self, parent_id: str, child_id: str) -> None:
        self._tables[child_id] = list(self._tables[parent_id])
        self._lengths[child_id] = self._lengths[parent_id]

    def block_table(self, request_id: str) -> list[int]:
        return self._tables[request_id]


class CopiesBackwards(Pad):
    """The copy runs from the new block into the shared one."""

    def copy(self, source: int, destination: int, num_slots: int) -> None:
        for offset in range(num_slots):
            self._slots[destination, offset] = self._slots[source, offset]
            self._slots[source, offset] = "?"


class LosesTheCopy(Pad):
    """A new block, and nothing copied into it."""

    def copy(self, source: int, destination: int, num_slots: int) -> None:
        pass


FAULTS = {
    "a fork that copies every block at once": (
        CopiesAtOnce,
        "before: both tables are equal right after the fork",
    ),
    "two requests that go on in one block": (
        WritesInPlace,
        "after: the last blocks differ once one has written",
    ),
    "a copy that destroys its source": (
        CopiesBackwards,
        "unchanged: the other still reads what it read before",
    ),
    "a copy that never happens": (
        LosesTheCopy,
        "unchanged: the writer still reads the prompt before its own text",
    ),
}
