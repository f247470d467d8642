"""Layers of several kinds in one pool: each group has tables of its own, all take blocks from one free list.

A full-attention group keeps every block, a windowed group gives blocks back as its window moves on, a linear
group keeps one block with its state. So one request has as many tables as there are groups, of different
lengths, and a block that a window gives up can be the next one of any group of any request.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import index
from typing import NamedTuple

import numpy as np

from kvlab.block_pool import BlockPool
from kvlab.block_table import Growth
from kvlab.books import Books
from kvlab.cached_start import CachedStart, common_start
from kvlab.hybrid_reservation import HybridReservation
from kvlab.invariants import checked_holders
from kvlab.layer_groups import Plan
from kvlab.prefix_cache import ExtraKeys, PrefixCache
from kvlab.reservation import Reservation, hold_cached, token_ids
from kvlab.window_manager import Tokens, WindowManager


class GroupKind(NamedTuple):
    """What a group of layers keeps. kind: "full", "sliding", "chunked" or "linear"."""

    kind: str
    block_size: int
    window: int | None = None


class _GroupTables(WindowManager):
    """One group's tables in a pool that it shares with the others."""

    def __init__(self, pool: BlockPool, kind: GroupKind, prefix_cache: PrefixCache | None):
        self.prefix_cache = prefix_cache
        Books.__init__(self, pool, kind.block_size)
        self._set_window(kind.window, kind.kind == "chunked")
        self.kind = kind.kind

    def share_of(self, tokens: Tokens) -> dict[Hashable, int | Sequence[int]]:
        """The tokens that this group stores; a linear group stores one state, once."""
        if self.kind != "linear":
            return dict(tokens)
        return {request_id: 1 for request_id in tokens if request_id not in self._tables}


class _Caches(NamedTuple):
    """What a pool asks of its prefix cache, asked of every group's: a block has content of one at most."""

    caches: list[PrefixCache]

    def __contains__(self, block: int) -> bool:
        return any(block in cache for cache in self.caches)

    def evict(self, block: int) -> bool:
        return any(cache.evict(block) for cache in self.caches)


class HybridManager:
    """One pool, several groups of layers; a request grows in all of them or in none.

    With a prefix cache, a new request starts where every group finds what its next token sees: all blocks in
    a full-attention group, those of one window in a sliding one (`cached_start.common_start`).

    Args:
        num_blocks: blocks of the pool, block 0 (the null block, which stands for a hole) included.
        groups: a `GroupKind` a group, or the `Plan` of `layer_groups.plan_groups`.
        reuse: the order in which blocks are handed out again, as for `BlockManager`.
        prefix_caching: find full blocks again by their content; requests must then bring their token ids.

    Raises:
        ValueError: no group, an unknown kind, a window that does not fit the kind, or a prefix cache with a
            linear group.
    """

    def __init__(
        self,
        num_blocks: int,
        groups: Plan | Iterable[GroupKind],
        *,
        reuse: str = "lru",
        prefix_caching: bool = False,
    ):
        if isinstance(groups, Plan):
            groups = [GroupKind(g.kind, g.block_size, g.layer.window) for g in groups.groups]
        kinds = [GroupKind(*group) for group in groups]
        for number, kind in enumerate(kinds):
            _check_kind(number, kind)
        if not kinds:
            raise ValueError("a hybrid manager needs at least one group")
        self.groups = tuple(kinds)
        self.num_blocks = num_blocks
        if prefix_caching and any(kind.kind == "linear" for kind in kinds):
            raise ValueError(
                "a linear group keeps only its newest state, and a cached prefix would need the state at its "
                "end: leave prefix_caching off"
            )
        caches = [PrefixCache(kind.block_size) if prefix_caching else None for kind in kinds]
        content = _Caches(caches) if prefix_caching else None
        self._pool = BlockPool(num_blocks, reuse=reuse, null_block=True, prefix_cache=content)
        self._tables = [_GroupTables(self._pool, *own) for own in zip(kinds, caches, strict=True)]
        self._lengths: dict[Hashable, int] = {}
        self._open: set[Hashable] = set()

    def append(
        self, request_id: Hashable, tokens: int | Sequence[int], *, keys: ExtraKeys | None = None
    ) -> list[Growth]:
        """Room for more tokens in every group: a `Growth` a group. OutOfBlocks: nothing changed.

        tokens: how many, or their ids, which prefix caching needs; keys: as for `BlockManager.append`."""
        with self.reserve({request_id: tokens}, keys={request_id: keys} if keys else None) as reservation:
            pass
        return reservation[request_id]

    def reserve(
        self, tokens: Tokens, *, keys: Mapping[Hashable, ExtraKeys] | None = None
    ) -> HybridReservation:
        """The blocks of one step for a whole batch, in all groups: commit on a clean exit, else roll back.

        Raises:
            OutOfBlocks: the groups together need more than is free, also after their windows gave back.
            ValueError: less than one token, or a request in an open reservation.
        """
        for request_id, asked in tokens.items():
            self._refuse_reserved(request_id)
            if _count(asked) < 1:
                raise ValueError(f"request {request_id!r}: append at least 1 token, got {asked!r}")
        keys = keys or {}
        starts = zip(self._tables, self._cached_starts(tokens, keys), strict=True)
        shares = [(group, group._plan(group.share_of(tokens), keys, own)) for group, own in starts]
        self._pool.require(sum(group._demand(own) for group, own in shares))
        # All windows give back first: one group may need what another one gives.
        for group, own in shares:
            group._give_back(own)
        free_before = hold_cached(self._pool, [plan for _, own in shares for plan in own])
        parts = [Reservation(group, own, []) for group, own in shares]
        counts = {request_id: _count(asked) for request_id, asked in tokens.items()}
        return HybridReservation(self, counts, parts, free_before)

    def release(self, request_id: Hashable) -> None:
        """Give back the request's blocks of all groups. KeyError; ValueError in an open reservation."""
        self._refuse_reserved(request_id)
        self.length(request_id)
        for group in self._tables:
            group.release(request_id)
        del self._lengths[request_id]

    def length(self, request_id: Hashable) -> int:
        """The number of tokens the request holds. KeyError for an unknown one."""
        if request_id not in self._lengths:
            raise KeyError(f"no request {request_id!r}: it was never appended to, or it was released")
        return self._lengths[request_id]

    def block_table(self, request_id: Hashable, group: int) -> list[int]:
        """The request's blocks in this group, in logical order; 0 stands for one that was given back."""
        return self._tables[group].block_table(request_id)

    def block_table_array(self, request_ids: Sequence[Hashable], group: int) -> np.ndarray:
        """This group's tables for a kernel: int32 [S, max_blocks]."""
        return self._tables[group].block_table_array(request_ids)

    def context_lens(self, request_ids: Sequence[Hashable]) -> np.ndarray:
        """Lengths for a kernel: int32 [S]."""
        return np.array([self.length(request_id) for request_id in request_ids], dtype=np.int32)  # [S]

    def blocks_held(self, request_id: Hashable) -> list[int]:
        """How many blocks the request holds in each group."""
        return [len(group._held(group._table(request_id))) for group in self._tables]

    def request_ids(self) -> list[Hashable]:
        """The live requests, oldest first."""
        return list(self._lengths)

    @property
    def num_free(self) -> int:
        """Blocks that any group can take now."""
        return len(self._pool.free)

    def free_order(self) -> list[int]:
        """The free blocks, next to be handed out first."""
        return list(self._pool.free)

    def check(self) -> None:
        """Raise InvariantError unless each block is free or held, once, by one group of one request."""
        holders: dict[int, list] = {}
        for number, group in enumerate(self._tables):
            for block, who in checked_holders(group).items():
                holders.setdefault(block, []).extend((request_id, number) for request_id in who)
        self._pool.check(holders)

    def _cached_starts(
        self, tokens: Tokens, keys: Mapping[Hashable, ExtraKeys]
    ) -> list[dict[Hashable, CachedStart]]:
        """For each group, where the new requests can start; all groups of a request at the same token."""
        starts: list[dict[Hashable, CachedStart]] = [{} for _ in self._tables]
        if self._pool.prefix_cache is None:
            return starts
        for request_id, asked in tokens.items():
            if request_id not in self._lengths and hasattr(asked, "__len__"):
                ids, extra = token_ids(request_id, asked), keys.get(request_id, ExtraKeys())
                lookups = [group._lookup(ids, extra) for group in self._tables]
                common = common_start(lookups)
                for own, lookup in zip(starts, lookups, strict=True):
                    own[request_id] = lookup.start(common)
        return starts

    def _refuse_reserved(self, request_id: Hashable) -> None:
        if request_id in self._open:
            raise ValueError(
                f"request {request_id!r} is in an open reservation: commit it or roll it back first"
            )


def _count(asked: int | Sequence[int]) -> int:
    return len(asked) if hasattr(asked, "__len__") else index(asked)


def _check_kind(number: int, kind: GroupKind) -> None:
    if kind.kind not in ("full", "sliding", "chunked", "linear"):
        raise ValueError(f"group {number}: {kind.kind!r} is not a kind; use full, sliding, chunked or linear")
    if (kind.kind in ("sliding", "chunked")) != (kind.window is not None):
        raise ValueError(
            f"group {number}: sliding and chunked layers need a window, others have none; got {kind.kind} "
            f"with window {kind.window!r}"
        )
    if not isinstance(kind.block_size, int) or kind.block_size < 1:
        raise ValueError(f"group {number}: block_size must be at least 1 token, got {kind.block_size!r}")
