"""The block manager: which physical block and slot each token of each request lives in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from kvlab.block_pool import BlockPool, Event
from kvlab.block_table import BlockTable, Growth, Slot
from kvlab.books import Books
from kvlab.cached_start import CachedStart
from kvlab.prefix_cache import BlockHash, ExtraKeys, PrefixCache, sha256
from kvlab.reservation import Reservation, blocks_needed, hold_cached, make_plans

# Slot(...) runs a Python-level __new__; this is the same object at half the price, for the hot path.
_new_tuple = tuple.__new__


class BlockManager(Books):
    """Maps every request's tokens to slots of physical blocks, on demand, with copy-on-write sharing.

    Token number t of a request lives in physical block `block_table[t // block_size]`, at offset
    `t % block_size`. Ids of requests are any hashable.

    A call that raises has changed nothing. `Books` has the rules that always hold, and all that can be asked.

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
        self.prefix_cache = PrefixCache(block_size, block_hash) if prefix_caching else None
        pool = BlockPool(
            num_blocks,
            reuse=reuse or ("lru" if prefix_caching else "fifo"),
            null_block=null_block,
            free_order=free_order,
            on_event=on_event,
            prefix_cache=self.prefix_cache,
        )
        super().__init__(pool, block_size)

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
            ValueError: the request is part of an open reservation, or the token is no whole number.
        """
        table = self._tables.get(request_id)
        if table is None or self._reservations:
            return self._append_one(request_id, token)
        offset = table.length % self.block_size
        block = table.blocks[-1]
        if not offset:
            return self._append_to_new_block(request_id, table, token)
        if self._ref_counts[block] > 1:
            return self._append_one(request_id, token)
        # A token that is none raises here, before anything has changed.
        if table.chain is not None and (link := table.chain.push(token)) is not None:
            self.prefix_cache.add(block, link)
        table.length += 1
        return _new_tuple(Slot, (block, offset, None))

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
        self._pool.share(self._held(parent), child_id)
        chain = None if parent.chain is None else parent.chain.copy()
        child = BlockTable(list(parent.blocks), parent.length, self._rows.claim(), chain, parent.holes)
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
        self._pool.drop(self._held(table), request_id)
        self._rows.give_up(table.row)
        del self._tables[request_id]
        self._pool.deliver()

    def reset_prefix_cache(self) -> None:
        """Forget all cached content, for example when the weights change.

        Raises:
            ValueError: some request still holds blocks, or the manager has no prefix cache.
        """
        if self.prefix_cache is None:
            raise ValueError("this manager has no prefix cache: construct it with prefix_caching=True")
        if self._tables:
            raise ValueError(
                f"{len(self._tables)} requests hold blocks: release them before resetting the cache"
            )
        self.prefix_cache.clear()

    def _append_to_new_block(self, request_id: Hashable, table: BlockTable, token: int | None) -> Slot:
        self._pool.require(1)
        # Fills the block at once when it has one slot; a token that is none raises here.
        link = None if table.chain is None else table.chain.push(token)
        block = self._pool.take(request_id)
        self._rows.set(table.row, len(table.blocks), block)
        table.blocks.append(block)
        if link is not None:
            self.prefix_cache.add(block, link)
        table.length += 1
        self._pool.deliver()
        return _new_tuple(Slot, (block, 0, None))

    def _append_one(self, request_id: Hashable, token: int | None) -> Slot:
        return self.append(request_id, 1 if token is None else (token,)).slots[0]

    def _reserve(
        self, tokens: Mapping[Hashable, int | Sequence[int]], keys: Mapping[Hashable, ExtraKeys]
    ) -> Reservation:
        for request_id in tokens:
            self._refuse_reserved(request_id)
        plans = make_plans(self, tokens, keys)
        self._pool.require(blocks_needed(self, plans))
        return Reservation(self, plans, hold_cached(self._pool, plans))

    def _cached_start(self, tokens: Sequence[int], keys: ExtraKeys) -> CachedStart:
        """What the prefix cache has of a new request."""
        found = self.prefix_cache.longest_prefix(tokens, keys)
        return CachedStart(0, tuple(block for block, _ in found), found[-1][1]) if found else CachedStart()

    def _remember(self, table: BlockTable, tokens: int | Sequence[int]) -> None:
        """Let the blocks that `tokens` have filled be found by their content."""
        if not hasattr(tokens, "__len__"):
            table.chain.lose()
            return
        for logical_block, link in table.chain.extend(tokens):
            self.prefix_cache.add(table.blocks[logical_block], link)

    def _refuse_reserved(self, request_id: Hashable) -> None:
        if request_id in self._reservations:
            raise ValueError(
                f"request {request_id!r} is in an open reservation: commit it or roll it back first"
            )
