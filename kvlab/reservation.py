"""Growing several requests in one step: take all blocks first, commit the lengths or undo everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kvlab.block_table import BlockCopy, BlockTable, Growth, Slot

if TYPE_CHECKING:
    from kvlab.block_manager import BlockManager


class _Before(NamedTuple):
    """What undoing one request's growth needs."""

    request_id: Hashable
    table: BlockTable
    is_new: bool
    num_blocks: int
    copied: BlockCopy | None
    taken: list[int]


def blocks_needed(manager: BlockManager, counts: Mapping[Hashable, int]) -> int:
    """Free blocks that appending `counts` tokens would take, copies included.

    A request copies its last block when that is partial and another holder would remain. Each copy lowers
    the holders by one, so of k requests that share a partial block and all append, k - 1 copy.
    """
    needed = 0
    leaving: Counter[int] = Counter()
    for request_id, count in counts.items():
        table = manager._tables.get(request_id)
        length, blocks = (table.length, table.blocks) if table else (0, [])
        needed += -(-(length + count) // manager.block_size) - len(blocks)
        if length % manager.block_size and manager.ref_count(blocks[-1]) - leaving[blocks[-1]] > 1:
            needed += 1
            leaving[blocks[-1]] += 1
    return needed


class Reservation(Mapping[Hashable, Growth]):
    """The blocks taken for one step, by request id; made by `BlockManager.reserve`.

    As a context manager: a clean exit commits, an exception rolls back and goes on to the caller.
    """

    def __init__(self, manager: BlockManager, counts: Mapping[Hashable, int]):
        self.counts = dict(counts)
        # Sources of copies keep their count until the step is over: undoing needs them untouched.
        self.held: Counter[int] = Counter()
        self._manager = manager
        self._befores: list[_Before] = []
        self._growths: dict[Hashable, Growth] = {}
        self._open = True
        for request_id, count in self.counts.items():
            self._growths[request_id] = self._grow(request_id, count)
            manager._reservations[request_id] = self

    __hash__ = object.__hash__

    def __getitem__(self, request_id: Hashable) -> Growth:
        return self._growths[request_id]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._growths)

    def __len__(self) -> int:
        return len(self._growths)

    @property
    def copies(self) -> list[BlockCopy]:
        """All copies of the step, in the order in which they must be carried out, before any write."""
        return [copy for growth in self._growths.values() for copy in growth.copies]

    def commit(self) -> None:
        """The KV is written: add the tokens to the lengths and let go of the copies' sources."""
        self._close()
        for before in self._befores:
            before.table.length += self.counts[before.request_id]
            if before.copied:
                self._manager._pool.drop([before.copied.source], before.request_id)
        self._manager._pool.deliver()

    def roll_back(self) -> None:
        """Nothing was written: tables, counts and the free list become what they were."""
        self._close()
        for before in reversed(self._befores):
            self._undo(before)
        self._manager._pool.deliver()

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, exception_type: type | None, *_: object) -> None:
        if not self._open:
            return
        if exception_type is None:
            self.commit()
        else:
            self.roll_back()

    def _close(self) -> None:
        if not self._open:
            raise ValueError("this reservation is already committed or rolled back")
        self._open = False
        for request_id in self.counts:
            del self._manager._reservations[request_id]

    def _grow(self, request_id: Hashable, count: int) -> Growth:
        manager, size = self._manager, self._manager.block_size
        table = manager._tables.get(request_id)
        is_new = table is None
        if is_new:
            table = manager._tables[request_id] = BlockTable([], 0, manager._rows.claim())
        num_blocks = len(table.blocks)
        copied = self._copy_last_block(request_id, table)
        more = -(-(table.length + count) // size) - num_blocks
        new = [manager._pool.take(request_id) for _ in range(more)]
        table.blocks += new
        manager._rows.write(table.row, num_blocks, new)
        taken = [copied.destination, *new] if copied else new
        self._befores.append(_Before(request_id, table, is_new, num_blocks, copied, taken))
        slots = [
            Slot(table.blocks[position // size], position % size)
            for position in range(table.length, table.length + count)
        ]
        if copied:
            slots[0] = slots[0]._replace(copied_from=copied.source)
        return Growth(slots, [copied] if copied else [])

    def _copy_last_block(self, request_id: Hashable, table: BlockTable) -> BlockCopy | None:
        manager = self._manager
        filled = table.length % manager.block_size
        if not filled:
            return None
        source = table.blocks[-1]
        if manager.ref_count(source) - self.held[source] == 1:
            return None
        destination = manager._pool.take(request_id)
        manager._pool.note("copy", destination, request_id)
        self.held[source] += 1
        table.blocks[-1] = destination
        manager._rows.set(table.row, len(table.blocks) - 1, destination)
        return BlockCopy(source, destination, filled)

    def _undo(self, before: _Before) -> None:
        manager, table = self._manager, before.table
        manager._pool.put_back(before.taken, before.request_id)
        del table.blocks[before.num_blocks :]
        manager._rows.truncate(table.row, before.num_blocks)
        if before.copied:
            table.blocks[-1] = before.copied.source
            manager._rows.set(table.row, before.num_blocks - 1, before.copied.source)
        if before.is_new:
            manager._rows.give_up(table.row)
            del manager._tables[before.request_id]
