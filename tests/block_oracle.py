"""A block manager written to be obviously right: plain dicts, token by token, copies of everything.

It predicts block ids, copies and free order; `Contents` tracks what each slot really holds.
"""

from __future__ import annotations

from copy import deepcopy


class Refused(Exception):
    """The oracle's own word for "not enough blocks", with how many were needed."""

    def __init__(self, needed: int):
        self.needed = needed


class DictManager:
    def __init__(self, num_blocks: int, block_size: int, reuse: str, null_block: bool):
        self.block_size, self.reuse = block_size, reuse
        self.free = list(range(1 if null_block else 0, num_blocks))
        self.tables: dict[str, list[int]] = {}
        self.lengths: dict[str, int] = {}

    def count(self, block: int) -> int:
        return sum(block in table for table in self.tables.values())

    def needed(self, batch: dict[str, int]) -> int:
        """Free blocks that the batch would take, found by carrying it out on a copy with plenty of blocks."""
        trial = deepcopy(self)
        trial.free = [*range(-1000, 0)]
        for who, count in batch.items():
            for _ in range(count):
                trial._one(who)
        return 1000 - len(trial.free)

    def grow(self, batch: dict[str, int]) -> dict[str, list[tuple]]:
        """(block, offset, copied_from) of each token; all of the batch or `Refused`."""
        needed = self.needed(batch)
        if needed > len(self.free):
            raise Refused(needed)
        return {who: [self._one(who) for _ in range(count)] for who, count in batch.items()}

    def _one(self, who: str) -> tuple:
        table, length = self.tables.setdefault(who, []), self.lengths.get(who, 0)
        offset, copied_from = length % self.block_size, None
        if offset == 0:
            table.append(self.free.pop(0))
        elif self.count(table[-1]) > 1:
            copied_from = table[-1]
            table[-1] = self.free.pop(0)
        self.lengths[who] = length + 1
        return table[-1], offset, copied_from

    def fork(self, parent: str, child: str) -> None:
        self.tables[child] = list(self.tables[parent])
        self.lengths[child] = self.lengths[parent]

    def release(self, who: str) -> None:
        table = self.tables.pop(who)
        del self.lengths[who]
        freed = [block for block in table if self.count(block) == 0]
        self.free = self.free + freed if self.reuse == "fifo" else freed[::-1] + self.free

    def state(self) -> tuple:
        return self.tables, self.lengths, self.free


class Contents:
    """What was written into each slot, and which tokens each request must still be able to read."""

    def __init__(self, block_size: int):
        self.block_size = block_size
        self.slots: dict[tuple[int, int], str] = {}
        self.tokens: dict[str, list[str]] = {}
        self.serial = 0

    def copy(self, copies) -> None:
        for source, destination, num_slots in copies:
            for offset in range(num_slots):
                self.slots[destination, offset] = self.slots[source, offset]

    def write(self, who: str, slots) -> None:
        for block, offset, *_ in slots:
            self.serial += 1
            self.slots[block, offset] = f"{who} {self.serial}"
            self.tokens.setdefault(who, []).append(self.slots[block, offset])

    def scribble(self, slots) -> None:
        """Writes of a step that is then rolled back: nobody may notice them."""
        for block, offset, *_ in slots:
            self.slots[block, offset] = "rolled back"

    def read(self, table: list[int], length: int) -> list[str]:
        return [self.slots[table[p // self.block_size], p % self.block_size] for p in range(length)]
