"""Growing several requests in one step: take all blocks first, commit the lengths or undo everything."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING

from kvlab.block_table import BlockCopy, BlockTable, Growth, Slot
from kvlab.cached_start import CachedStart
from kvlab.prefix_cache import ExtraKeys, TokenChain

if TYPE_CHECKING:
    from kvlab.block_manager import BlockManager
    from kvlab.block_pool import BlockPool

_NO_KEYS = ExtraKeys()


@dataclass
class Plan:
    """One request's share of a step, and what undoing it needs.

    start: what the prefix cache has of a new request.
    """

    request_id: Hashable
    tokens: int | Sequence[int]
    count: int
    keys: ExtraKeys
    start: CachedStart
    table: BlockTable | None
    num_blocks: int = 0
    copied: BlockCopy | None = None
    taken: Sequence[int] = ()


def make_plans(
    manager: BlockManager,
    tokens: Mapping[Hashable, int | Sequence[int]],
    keys: Mapping[Hashable, ExtraKeys],
    starts: Mapping[Hashable, CachedStart] | None = None,
) -> list[Plan]:
    """What each request of the batch asks for; nothing is changed yet. starts: None looks them up."""
    plans = []
    for request_id, n in tokens.items():
        asked = token_ids(request_id, n) if hasattr(n, "__len__") else index(n)
        count = asked if isinstance(asked, int) else len(asked)
        if count < 1:
            raise ValueError(f"request {request_id!r}: append at least 1 token, got {n!r}")
        table = manager._tables.get(request_id)
        extra = keys.get(request_id, _NO_KEYS)
        if starts is not None:
            start = starts.get(request_id, CachedStart())
        elif table is None and manager.prefix_cache is not None and not isinstance(asked, int):
            start = manager._cached_start(asked, extra)
        else:
            start = CachedStart()
        plans.append(Plan(request_id, asked, count, extra, start, table))
    return plans


def token_ids(request_id: Hashable, tokens: Sequence[int]) -> list[int]:
    """The ids as a list of ints; ValueError for what is none."""
    try:
        return array("q", tokens).tolist()
    except (TypeError, OverflowError) as error:
        raise ValueError(
            f"request {request_id!r}: token ids are whole numbers of 64 bits ({error})"
        ) from None


def blocks_needed(manager: BlockManager, plans: list[Plan]) -> int:
    """Free blocks that the step would use, copies and revived cached blocks included.

    A request copies its last block when that is partial and another holder would remain. Each copy lowers
    the holders by one, so of k requests that share a partial block and all append, k - 1 copy. A hit costs
    no block when somebody holds it; one that is free leaves the free list, once for the whole batch.
    """
    needed, size, counts = 0, manager.block_size, manager._ref_counts
    leaving: Counter[int] = Counter()
    revived = set()
    for plan in plans:
        if plan.table is None:
            needed += -(-plan.count // size) - plan.start.num_blocks
            revived.update(block for block in plan.start.blocks if not counts[block])
            continue
        length, blocks = plan.table.length, plan.table.blocks
        needed += -(-(length + plan.count) // size) - len(blocks)
        if length % size and counts[blocks[-1]] > 1 + leaving[blocks[-1]]:
            needed += 1
            leaving[blocks[-1]] += 1
    return needed + len(revived)


def hold_cached(pool: BlockPool, plans: Sequence[Plan]) -> list[int]:
    """Hold the cached blocks of a whole step before any block is taken: one request's new block could be
    another's hit. Returns the free list before that, for undoing; empty when nothing was held."""
    free_before = list(pool.free) if any(plan.start.blocks for plan in plans) else []
    for plan in plans:
        pool.touch(plan.start.blocks, plan.request_id)
    return free_before


class Reservation(Mapping[Hashable, Growth]):
    """The blocks taken for one step, by request id; made by `BlockManager.reserve`.

    As a context manager: a clean exit commits, an exception rolls back and goes on to the caller.

    Args:
        free_before: what `hold_cached` gave.
    """

    def __init__(self, manager: BlockManager, plans: list[Plan], free_before: list[int]):
        self.counts = {plan.request_id: plan.count for plan in plans}
        # Sources of copies keep their count until the step is over: undoing needs them untouched.
        self.held: Counter[int] = Counter()
        self._manager = manager
        self._plans = plans
        self._growths: dict[Hashable, Growth] = {}
        self._open = True
        self._free_before = free_before
        for plan in plans:
            self._growths[plan.request_id] = self._grow(plan)
            manager._reservations[plan.request_id] = self

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
        """The KV is written: add the tokens to the lengths, let go of the copies' sources, and let full
        blocks be found by their content."""
        self._close()
        for plan in self._plans:
            plan.table.length += plan.count
            if plan.copied:
                self._manager._pool.drop([plan.copied.source], plan.request_id)
            if plan.table.chain is not None:
                self._remember(plan)
        self._manager._pool.deliver()

    def roll_back(self) -> None:
        """Nothing may be used of what was written: tables, counts and the free list become what they were.

        Cached content that taken blocks held is gone: the step may have written over it.
        """
        self._close()
        for plan in reversed(self._plans):
            self._undo(plan)
        self._manager._pool.restore_order(self._free_before)
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

    def _remember(self, plan: Plan) -> None:
        tokens = plan.tokens
        if plan.num_blocks == 0 and not isinstance(tokens, int):
            cached = self._growths[plan.request_id].cached
            self._manager.prefix_cache.count(len(tokens), cached)
            if cached:
                plan.table.chain.start_after(plan.start.link, plan.start.num_blocks)
                tokens = tokens[cached:]
        self._manager._remember(plan.table, tokens)

    def _close(self) -> None:
        if not self._open:
            raise ValueError("this reservation is already committed or rolled back")
        self._open = False
        for request_id in self.counts:
            del self._manager._reservations[request_id]

    def _grow(self, plan: Plan) -> Growth:
        manager, size = self._manager, self._manager.block_size
        table = plan.table
        if table is None:
            cache = manager.prefix_cache
            chain = None if cache is None else TokenChain(cache, plan.keys)
            table = plan.table = BlockTable([], 0, manager._rows.claim(), chain, plan.start.holes)
            manager._tables[plan.request_id] = table
        plan.num_blocks = len(table.blocks)
        plan.copied = self._copy_last_block(plan)
        more = -(-(table.length + plan.count) // size) - plan.num_blocks - plan.start.num_blocks
        new = [manager._pool.take(plan.request_id) for _ in range(more)]
        if new or plan.start.num_blocks:
            joining = [*[manager.hole] * plan.start.holes, *plan.start.blocks, *new]
            table.blocks += joining
            manager._rows.write(table.row, plan.num_blocks, joining)
        plan.taken = [plan.copied.destination, *new] if plan.copied else new
        slots = [
            Slot(table.blocks[position // size], position % size)
            for position in range(table.length, table.length + plan.count)
        ]
        if plan.copied:
            slots[0] = slots[0]._replace(copied_from=plan.copied.source)
        return Growth(slots, [plan.copied] if plan.copied else [], plan.start.num_blocks * size)

    def _copy_last_block(self, plan: Plan) -> BlockCopy | None:
        manager, table = self._manager, plan.table
        filled = table.length % manager.block_size
        if not filled:
            return None
        source = table.blocks[-1]
        if manager.ref_count(source) - self.held[source] == 1:
            return None
        destination = manager._pool.take(plan.request_id)
        manager._pool.note("copy", destination, plan.request_id)
        self.held[source] += 1
        table.blocks[-1] = destination
        manager._rows.set(table.row, len(table.blocks) - 1, destination)
        return BlockCopy(source, destination, filled)

    def _undo(self, plan: Plan) -> None:
        manager, table = self._manager, plan.table
        manager._pool.put_back(plan.taken, plan.request_id)
        manager._pool.drop(plan.start.blocks, plan.request_id)
        del table.blocks[plan.num_blocks :]
        manager._rows.truncate(table.row, plan.num_blocks)
        if plan.copied:
            table.blocks[-1] = plan.copied.source
            manager._rows.set(table.row, plan.num_blocks - 1, plan.copied.source)
        if not table.blocks:
            manager._rows.give_up(table.row)
            del manager._tables[plan.request_id]
