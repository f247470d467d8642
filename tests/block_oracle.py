"""A block manager written to be obviously right: plain dicts, token by token, copies of everything.

It predicts block ids, copies and free order; `Contents` tracks what each slot really holds.
"""

from __future__ import annotations

from copy import copy


class Refused(Exception):
    """The oracle's own word for "not enough blocks", with how many were needed."""

    def __init__(self, needed: int):
        self.needed = needed


class DictManager:
    def __init__(self, num_blocks: int, block_size: int, reuse: str, null_block: bool, caching: bool = False):
        self.block_size, self.reuse, self.caching = block_size, reuse, caching
        self.free = list(range(1 if null_block else 0, num_blocks))
        self.tables: dict[str, list[int]] = {}
        self.lengths: dict[str, int] = {}
        # With caching: every request's tokens, and the whole prefix whose last block each cached block holds.
        self.tokens: dict[str, list[int]] = {}
        self.content: dict[int, tuple[int, ...]] = {}
        self.evicted: list[int] = []

    def clone(self) -> DictManager:
        twin = copy(self)
        twin.free, twin.evicted = list(self.free), list(self.evicted)
        twin.lengths, twin.content = dict(self.lengths), dict(self.content)
        twin.tables = {who: list(table) for who, table in self.tables.items()}
        twin.tokens = {who: list(tokens) for who, tokens in self.tokens.items()}
        return twin

    def count(self, block: int) -> int:
        return sum(block in table for table in self.tables.values())

    def needed(self, batch: dict[str, list[int]]) -> int:
        """Free blocks that the batch would take, found by carrying it out on a copy with plenty of blocks."""
        trial = self.clone()
        trial.free = [*self.free, *range(-1000, 0)]
        trial._grow(batch)
        return len(self.free) + 1000 - len(trial.free)

    def grow(self, batch: dict[str, list[int]]) -> dict[str, tuple[list[tuple], int]]:
        """By request: (block, offset, copied_from) of each token, and how many are cached; or `Refused`."""
        needed = self.needed(batch)
        if needed > len(self.free):
            raise Refused(needed)
        return self._grow(batch)

    def _grow(self, batch: dict[str, list[int]]) -> dict[str, tuple[list[tuple], int]]:
        hits = {who: self._hits(tokens) for who, tokens in batch.items() if who not in self.tables}
        for who, blocks in hits.items():
            self.tables[who] = blocks
            self.free = [block for block in self.free if block not in blocks]
        grown = {}
        for who, tokens in batch.items():
            cached = len(hits.get(who, [])) * self.block_size
            table, size = self.tables.get(who, []), self.block_size
            found = [(table[p // size], p % size, None) for p in range(cached)]
            self.lengths.setdefault(who, cached)
            grown[who] = found + [self._one(who) for _ in tokens[cached:]], cached
        for who, tokens in batch.items():
            self._remember(who, tokens)
        return grown

    def _hits(self, tokens: list[int]) -> list[int]:
        found = []
        while self.caching and (end := (len(found) + 1) * self.block_size) < len(tokens):
            same = [block for block, prefix in self.content.items() if prefix == tuple(tokens[:end])]
            if not same:
                break
            found.append(same[0])
        return found

    def _remember(self, who: str, tokens: list[int]) -> None:
        if not self.caching:
            return
        known = self.tokens.setdefault(who, [])
        first_open = len(known) // self.block_size
        known += tokens
        for logical_block in range(first_open, len(known) // self.block_size):
            prefix = tuple(known[: (logical_block + 1) * self.block_size])
            self.content.setdefault(self.tables[who][logical_block], prefix)

    def _take(self) -> int:
        block = self.free.pop(0)
        if self.content.pop(block, None):
            self.evicted.append(block)
        return block

    def lose_content(self, batch: dict[str, list[int]]) -> None:
        """A step for the batch was undone: the blocks that it took have lost what they held."""
        trial = self.clone()
        trial._grow(batch)
        for block in trial.evicted[len(self.evicted) :]:
            del self.content[block]
            self.evicted.append(block)

    def _one(self, who: str) -> tuple:
        table, length = self.tables.setdefault(who, []), self.lengths.get(who, 0)
        offset, copied_from = length % self.block_size, None
        if offset == 0:
            table.append(self._take())
        elif self.count(table[-1]) > 1:
            copied_from = table[-1]
            table[-1] = self._take()
        self.lengths[who] = length + 1
        return table[-1], offset, copied_from

    def fork(self, parent: str, child: str) -> None:
        self.tables[child] = list(self.tables[parent])
        self.lengths[child] = self.lengths[parent]
        self.tokens[child] = list(self.tokens.get(parent, []))

    def release(self, who: str) -> None:
        table = self.tables.pop(who)
        del self.lengths[who]
        self.tokens.pop(who, None)
        freed = [block for block in table if self.count(block) == 0]
        if self.reuse == "fifo":
            self.free += freed
            return
        unhashed = [block for block in freed[::-1] if block not in self.content]
        hashed = [block for block in freed[::-1] if block in self.content]
        self.free = unhashed + self.free + hashed

    def state(self) -> tuple:
        return self.tables, self.lengths, self.free


class Contents:
    """What was written into each slot, and what each request must read at each of its positions.

    Without caching every write is unique. With caching the KV of a token is a function of the tokens up to
    it, as in a model, so that a hit can be read by those who never wrote it.
    """

    def __init__(self, block_size: int, caching: bool = False):
        self.block_size, self.caching = block_size, caching
        self.slots: dict[tuple[int, int], object] = {}
        self.expected: dict[str, list[object]] = {}
        self.tokens: dict[str, list[int]] = {}
        self.serial = 0

    def copy(self, copies) -> None:
        for source, destination, num_slots in copies:
            for offset in range(num_slots):
                self.slots[destination, offset] = self.slots[source, offset]

    def write(self, who: str, slots, tokens, cached: int = 0) -> None:
        for index, (block, offset, *_) in enumerate(slots):
            self.tokens.setdefault(who, []).append(tokens[index])
            self.serial += 1
            value = tuple(self.tokens[who]) if self.caching else (who, self.serial)
            self.expected.setdefault(who, []).append(value)
            if index >= cached:
                self.slots[block, offset] = value

    def scribble(self, slots) -> None:
        """Writes of a step that is then rolled back: nobody may notice them."""
        for block, offset, *_ in slots:
            self.slots[block, offset] = "rolled back"

    def fork(self, parent: str, child: str) -> None:
        self.expected[child] = list(self.expected[parent])
        self.tokens[child] = list(self.tokens[parent])

    def release(self, who: str) -> None:
        del self.expected[who], self.tokens[who]

    def read(self, table: list[int], length: int) -> list[object]:
        return [self.slots[table[p // self.block_size], p % self.block_size] for p in range(length)]
