"""The block manager: which physical block and slot each token of each request lives in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import index

import numpy as np

from kvlab.block_pool import BlockPool, Event, InvariantError
from kvlab.block_table import BlockTable, Growth, Slot, TableRows, unknown_request
from kvlab.reservation import Reservation, blocks_needed

# Slot(...) runs a Python-level __new__; this is the same object at half the price, for the hot path.
_new_tuple = tuple.__new__


class BlockManager:
    """Maps every request's tokens to slots of physical blocks, on demand, with copy-on-write sharing.

    Token number t of a request lives in physical block `block_table[t // block_size]`, at offset
    `t % block_size`. Ids of requests are any hashable.

    Rules that hold after every call (`check()` verifies them): free + allocated = all usable blocks; a block
    is allocated exactly when its count is positive; its count is the number of tables that hold it; a table
    has exactly ceil(length / block_size) blocks. A call that raises has changed nothing.

    Args:
        num_blocks: physical blocks in the pool.
        block_size: tokens a block, at least 1.
        reuse: "fifo" or "lru", the order in which released blocks are handed out again (see `BlockPool`).
        null_block: keep block 0 unused, as vLLM does.
        free_order: the order in which blocks are first handed out, for examples such as table [7, 1].
        on_event: called with an `Event` for each block that is allocated, shared, copied to or freed, once
            the operation is complete.

    Raises:
        ValueError: block_size below 1, or a pool without a usable block.
    """

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        *,
        reuse: str = "fifo",
        null_block: bool = False,
        free_order: Sequence[int] | None = None,
        on_event: Callable[[Event], None] | None = None,
    ):
        if not isinstance(block_size, int) or block_size < 1:
            raise ValueError(f"block_size must be at least 1 token, got {block_size!r}")
        self.num_blocks = num_blocks
        self.block_size = block_size
        self._pool = BlockPool(
            num_blocks, reuse=reuse, null_block=null_block, free_order=free_order, on_event=on_event
        )
        self._ref_counts = self._pool.ref_counts
        self._tables: dict[Hashable, BlockTable] = {}
        self._rows = TableRows()
        self._reservations: dict[Hashable, Reservation] = {}

    # -- growing ------------------------------------------------------------------------------------------

    def append_slot(self, request_id: Hashable) -> Slot:
        """The slot for the request's next token; the request is created if it is new.

        The token's number is the length BEFORE the call (0-based): it goes to logical block
        `length // block_size`, offset `length % block_size`, and only then the length grows by one. So a new
        block is taken when `length % block_size == 0` before the append. If the last block is partial and
        shared, the token gets a fresh block, and `copied_from` names the block whose first `offset` slots
        must be copied there before the token is written.

        Raises:
            OutOfBlocks: no free block is left and one is needed.
            ValueError: the request is part of an open reservation.
        """
        table = self._tables.get(request_id)
        if table is None or self._reservations:
            return self.append(request_id, 1).slots[0]
        offset = table.length % self.block_size
        copied_from = None
        if offset and self._ref_counts[table.blocks[-1]] == 1:
            block = table.blocks[-1]
        elif not offset:
            block = self._pool.take(request_id)
            self._rows.set(table.row, len(table.blocks), block)
            table.blocks.append(block)
            self._pool.deliver()
        else:
            return self.append(request_id, 1).slots[0]
        table.length += 1
        return _new_tuple(Slot, (block, offset, copied_from))

    def append(self, request_id: Hashable, tokens: int | Sequence[int]) -> Growth:
        """Slots for several more tokens, all or nothing; the request is created if it is new.

        Args:
            tokens: how many tokens, or their ids (only their number matters without prefix caching).

        Returns:
            Growth(slots, copies, cached): one slot a token in order; at most one copy; cached is 0.

        Raises:
            OutOfBlocks: fewer blocks are free than needed.
            ValueError: less than one token, or the request is part of an open reservation.
        """
        reservation = self._reserve({request_id: tokens})
        reservation.commit()
        return reservation[request_id]

    def reserve(self, tokens: Mapping[Hashable, int | Sequence[int]]) -> Reservation:
        """Take the blocks for one step of a whole batch: all of it, or one `OutOfBlocks` and no change.

        Use it as a context manager around the step that writes the KV: a clean exit commits the lengths, an
        exception gives every block back, in the order they had. In between, block tables name the new
        blocks, lengths are still the old ones, and the batch's requests refuse any other change.

        Args:
            tokens: request id -> how many tokens (or their ids) it is about to write.
        """
        reservation = self._reserve(tokens)
        try:
            self._pool.deliver()
        except BaseException:
            reservation.roll_back()
            raise
        return reservation

    def can_append(self, tokens: Mapping[Hashable, int]) -> bool:
        """Whether `reserve(tokens)` would find enough free blocks now."""
        return blocks_needed(self, self._counts(tokens)) <= self.num_free

    def fork(self, parent_id: Hashable, child_id: Hashable) -> None:
        """Make `child_id` a second request with the parent's tokens, sharing every block, partial ones too.

        Costs no block: each distinct block's count grows by one. The first of the two to append into a
        shared partial block gets a copy of it; a full block is never copied.

        Raises:
            KeyError: unknown parent. ValueError: the child id is live, or the parent is being reserved for.
        """
        parent = self._table(parent_id)
        self._refuse_reserved(parent_id)
        if child_id in self._tables:
            raise ValueError(
                f"cannot fork {parent_id!r} onto {child_id!r}: that request is live, release it first"
            )
        self._pool.share(dict.fromkeys(parent.blocks), child_id)
        child = self._tables[child_id] = BlockTable(list(parent.blocks), parent.length, self._rows.claim())
        self._rows.write(child.row, 0, child.blocks)
        self._pool.deliver()

    def release(self, request_id: Hashable) -> None:
        """Forget the request and drop its blocks; those that nobody else holds are free again.

        Raises:
            KeyError: unknown request. ValueError: it is part of an open reservation.
        """
        table = self._table(request_id)
        self._refuse_reserved(request_id)
        self._pool.drop(list(dict.fromkeys(table.blocks)), request_id)
        self._rows.give_up(table.row)
        del self._tables[request_id]
        self._pool.deliver()

    # -- looking up -----------------------------------------------------------------------------------------

    def translate(self, request_id: Hashable, position: int) -> Slot:
        """The slot of token number `position` (0-based).

        Raises:
            KeyError: unknown request. IndexError: no token has that position.
        """
        table = self._table(request_id)
        if not 0 <= position < table.length:
            raise IndexError(
                f"request {request_id!r} has {table.length} tokens: no position {position} (the first is 0)"
            )
        logical_block, offset = divmod(position, self.block_size)
        return Slot(table.blocks[logical_block], offset)

    def block_table(self, request_id: Hashable) -> list[int]:
        """The request's physical blocks in logical order, as a copy."""
        return list(self._table(request_id).blocks)

    def length(self, request_id: Hashable) -> int:
        """The number of tokens the request holds."""
        return self._table(request_id).length

    def request_ids(self) -> list[Hashable]:
        """The live requests, oldest first."""
        return list(self._tables)

    def block_table_array(self, request_ids: Sequence[Hashable]) -> np.ndarray:
        """Block tables for a kernel: int32 [S, max_blocks], one row a request, -1 past a row's end."""
        tables = [self._table(request_id) for request_id in request_ids]
        width = max((len(table.blocks) for table in tables), default=0)
        return self._rows.pick([table.row for table in tables], width)  # [S, max_blocks]

    def context_lens(self, request_ids: Sequence[Hashable]) -> np.ndarray:
        """Lengths for a kernel: int32 [S]."""
        return np.array([self._table(request_id).length for request_id in request_ids], dtype=np.int32)  # [S]

    @property
    def num_free(self) -> int:
        """Blocks that can be handed out now."""
        return len(self._pool.free)

    @property
    def num_allocated(self) -> int:
        """Blocks that some table holds; num_free + num_allocated is the number of usable blocks."""
        return self._pool.num_usable - len(self._pool.free)

    def ref_count(self, block: int) -> int:
        """How many tables hold the block."""
        if not 0 <= block < self.num_blocks:
            raise IndexError(f"blocks are 0 to {self.num_blocks - 1}, got {block}")
        return self._ref_counts[block]

    def free_order(self) -> list[int]:
        """The free blocks, next to be handed out first."""
        return list(self._pool.free)

    def check(self) -> None:
        """Verify every rule of the class docstring.

        Raises:
            InvariantError: names the block or request, its holders and counts.
        """
        holders: dict[int, list[Hashable]] = {}
        for request_id, table in self._tables.items():
            for block in dict.fromkeys(table.blocks):
                holders.setdefault(block, []).append(request_id)
            self._check_table(request_id, table)
        for reservation in set(self._reservations.values()):
            for block in reservation.held.elements():
                holders.setdefault(block, []).append("open reservation")
        self._pool.check(holders)

    # -- inside ---------------------------------------------------------------------------------------------

    @staticmethod
    def _counts(tokens: Mapping[Hashable, int | Sequence[int]]) -> dict[Hashable, int]:
        counts = {}
        for request_id, n in tokens.items():
            counts[request_id] = len(n) if hasattr(n, "__len__") else index(n)
            if counts[request_id] < 1:
                raise ValueError(f"request {request_id!r}: append at least 1 token, got {n!r}")
        return counts

    def _reserve(self, tokens: Mapping[Hashable, int | Sequence[int]]) -> Reservation:
        counts = self._counts(tokens)
        for request_id in counts:
            self._refuse_reserved(request_id)
        self._pool.require(blocks_needed(self, counts))
        return Reservation(self, counts)

    def _table(self, request_id: Hashable) -> BlockTable:
        table = self._tables.get(request_id)
        if table is None:
            raise unknown_request(request_id)
        return table

    def _refuse_reserved(self, request_id: Hashable) -> None:
        if request_id in self._reservations:
            raise ValueError(
                f"request {request_id!r} is in an open reservation: commit it or roll it back first"
            )

    def _check_table(self, request_id: Hashable, table: BlockTable) -> None:
        reservation = self._reservations.get(request_id)
        tokens = table.length + (reservation.counts[request_id] if reservation else 0)
        needed = -(-tokens // self.block_size)
        if len(table.blocks) != needed:
            raise InvariantError(
                f"request {request_id!r}: {tokens} tokens need {needed} blocks, table {table.blocks}"
            )
        row = self._rows.pick([table.row], len(table.blocks))[0].tolist()
        if row != table.blocks:
            raise InvariantError(
                f"request {request_id!r}: table {table.blocks}, but the kernel's row says {row}"
            )
