"""The block manager: which physical block and slot each token of each request lives in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from kvlab.block_pool import BlockPool, Event
from kvlab.block_table import BlockTable, Growth, Slot, TableRows, unknown_request
from kvlab.invariants import check_books
from kvlab.prefix_cache import BlockHash, ExtraKeys, PrefixCache, PrefixStats, sha256
from kvlab.reservation import Reservation, blocks_needed, make_plans

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
        prefix_caching: let full blocks be found again by their content, also after their release.
        reuse: "fifo" (default without prefix caching) or "lru" (default with it), the order in which
            released blocks are handed out again (see `BlockPool`).
        null_block: keep block 0 unused, as vLLM does.
        free_order: the order in which blocks are first handed out, for examples such as table [7, 1].
        block_hash: the hash of the prefix cache; `toy_hash` shows collisions.
        on_event: called with an `Event` for each block that is allocated, shared, copied to, freed or evicted
            from the cache, once the operation is complete.

    Raises:
        ValueError: block_size below 1, or a pool without a usable block.
    """

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        *,
        prefix_caching: bool = False,
        reuse: str | None = None,
        null_block: bool = False,
        free_order: Sequence[int] | None = None,
        block_hash: BlockHash = sha256,
        on_event: Callable[[Event], None] | None = None,
    ):
        if not isinstance(block_size, int) or block_size < 1:
            raise ValueError(f"block_size must be at least 1 token, got {block_size!r}")
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.prefix_cache = PrefixCache(block_size, block_hash) if prefix_caching else None
        self._pool = BlockPool(
            num_blocks,
            reuse=reuse or ("lru" if prefix_caching else "fifo"),
            null_block=null_block,
            free_order=free_order,
            on_event=on_event,
            prefix_cache=self.prefix_cache,
        )
        self._ref_counts = self._pool.ref_counts
        self._tables: dict[Hashable, BlockTable] = {}
        self._rows = TableRows()
        self._reservations: dict[Hashable, Reservation] = {}

    # -- growing ------------------------------------------------------------------------------------------

    def append_slot(self, request_id: Hashable, token: int | None = None) -> Slot:
        """The slot for the request's next token; the request is created if it is new.

        The token's number is the length BEFORE the call (0-based): it goes to logical block
        `length // block_size`, offset `length % block_size`, and only then the length grows by one. So a new
        block is taken when `length % block_size == 0` before the append. If the last block is partial and
        shared, the token gets a fresh block, and `copied_from` names the block whose first `offset` slots
        must be copied there before the token is written.

        Args:
            token: the token's id, for prefix caching; without it, the request's later blocks stay unhashed.

        Raises:
            OutOfBlocks: no free block is left and one is needed.
            ValueError: the request is part of an open reservation.
        """
        table = self._tables.get(request_id)
        if table is None or self._reservations:
            return self._append_one(request_id, token)
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
            return self._append_one(request_id, token)
        table.length += 1
        if table.chain is not None:
            self._remember(table, 1 if token is None else (token,))
        return _new_tuple(Slot, (block, offset, copied_from))

    def append(
        self, request_id: Hashable, tokens: int | Sequence[int], *, keys: ExtraKeys | None = None
    ) -> Growth:
        """Slots for several more tokens, all or nothing; the request is created if it is new.

        Args:
            tokens: how many tokens, or their ids, which prefix caching needs.
            keys: what else a new request's KV depends on, for prefix caching.

        Returns:
            Growth(slots, copies, cached): one slot a token in order; at most one copy; the first `cached`
            tokens are already in their slots and need no computing.

        Raises:
            OutOfBlocks: fewer blocks are free than needed.
            ValueError: less than one token, or the request is part of an open reservation.
        """
        reservation = self._reserve({request_id: tokens}, {request_id: keys} if keys else {})
        reservation.commit()
        return reservation[request_id]

    def reserve(
        self,
        tokens: Mapping[Hashable, int | Sequence[int]],
        *,
        keys: Mapping[Hashable, ExtraKeys] | None = None,
    ) -> Reservation:
        """Take the blocks for one step of a whole batch: all of it, or one `OutOfBlocks` and no change.

        Use it as a context manager around the step that writes the KV: a clean exit commits the lengths, an
        exception gives every block back, in the order they had. In between, block tables name the new
        blocks, lengths are still the old ones, and the batch's requests refuse any other change. New full
        blocks can be found in the prefix cache from the commit on, when their KV exists.

        Args:
            tokens: request id -> how many tokens (or their ids) it is about to write.
            keys: request id -> extra keys, as for `append`.
        """
        reservation = self._reserve(tokens, keys or {})
        try:
            self._pool.deliver()
        except BaseException:
            reservation.roll_back()
            raise
        return reservation

    def can_append(self, tokens: Mapping[Hashable, int | Sequence[int]]) -> bool:
        """Whether `reserve(tokens)` would find enough free blocks now."""
        return blocks_needed(self, make_plans(self, tokens, {})) <= self.num_free

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
        chain = None if parent.chain is None else parent.chain.copy()
        child = BlockTable(list(parent.blocks), parent.length, self._rows.claim(), chain)
        self._tables[child_id] = child
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

    @property
    def prefix_stats(self) -> PrefixStats:
        """Tokens that new requests asked the prefix cache for, tokens found, and blocks evicted."""
        cache = self._caching()
        return PrefixStats(cache.queries, cache.hits, cache.evictions)

    def reset_prefix_cache(self) -> None:
        """Forget all cached content, for example when the weights change.

        Raises:
            ValueError: some request still holds blocks, or the manager has no prefix cache.
        """
        cache = self._caching()
        if self._tables:
            raise ValueError(
                f"{len(self._tables)} requests hold blocks: release them before resetting the cache"
            )
        cache.clear()

    def check(self) -> None:
        """Verify every rule of the class docstring.

        Raises:
            InvariantError: names the block or request, its holders and counts.
        """
        check_books(self)

    # -- inside ---------------------------------------------------------------------------------------------

    def _append_one(self, request_id: Hashable, token: int | None) -> Slot:
        return self.append(request_id, 1 if token is None else (token,)).slots[0]

    def _reserve(
        self, tokens: Mapping[Hashable, int | Sequence[int]], keys: Mapping[Hashable, ExtraKeys]
    ) -> Reservation:
        for request_id in tokens:
            self._refuse_reserved(request_id)
        plans = make_plans(self, tokens, keys)
        self._pool.require(blocks_needed(self, plans))
        return Reservation(self, plans)

    def _remember(self, table: BlockTable, tokens: int | Sequence[int]) -> None:
        """Let the blocks that `tokens` have filled be found by their content."""
        if not hasattr(tokens, "__len__"):
            table.chain.lose()
            return
        for logical_block, link in table.chain.extend(tokens):
            self.prefix_cache.add(table.blocks[logical_block], link)

    def _table(self, request_id: Hashable) -> BlockTable:
        table = self._tables.get(request_id)
        if table is None:
            raise unknown_request(request_id)
        return table

    def _caching(self) -> PrefixCache:
        if self.prefix_cache is None:
            raise ValueError("this manager has no prefix cache: construct it with prefix_caching=True")
        return self.prefix_cache

    def _refuse_reserved(self, request_id: Hashable) -> None:
        if request_id in self._reservations:
            raise ValueError(
                f"request {request_id!r} is in an open reservation: commit it or roll it back first"
            )
