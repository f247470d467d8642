"""Proof of addressing: write into each slot whose it is, then walk every block table and read it back."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache as cached
from typing import Any

import numpy as np
import torch

from kvlab.kv_cache import PagedKVCache, as_bits
from kvlab.sentinel_audit import CHUNK, Mismatch, Names, Walk, audit_walk, stored_records, walk_table
from kvlab.sentinel_record import LIMIT, RECORD_LANES, decode
from kvlab.slots import SKIP, flat_slots

__all__ = ["Mismatch", "SentinelWriter"]

NOBODY = 0


class SentinelWriter:
    """Writes records through the cache's own `write`, remembers what each request should hold, and audits.

    Args:
        cache: a `PagedKVCache`, or anything with its `write`, `k`, `v` and sizes.

    Raises:
        ValueError: head_dim has fewer lanes than a record, or there are too many layers or heads to number.
    """

    def __init__(self, cache: PagedKVCache):
        if cache.head_dim < RECORD_LANES:
            raise ValueError(
                f"head_dim {cache.head_dim} cannot hold a sentinel: one record needs {RECORD_LANES} lanes."
            )
        _check_limit("layer", cache.num_layers - 1)
        _check_limit("head", cache.num_kv_heads - 1)
        self.cache = cache
        # Every life of an id has a number of its own; the id stands at that place in the list.
        self._ids: list[Hashable] = [None]
        self._numbers: dict[Hashable, int] = {}
        # By live request: the number of the request that wrote each position.
        self._writers: dict[Hashable, np.ndarray] = {}

    def write(self, request_id: Hashable, position: int, slot: Any) -> None:
        """Write one token's records, K and V of every layer and head. slot: `Slot` or (block, offset)."""
        self.write_many(request_id, position, [slot])

    def write_many(self, request_id: Hashable, first_position: int, slots: Any) -> None:
        """Write the records of tokens first_position, first_position + 1, ... into these slots.

        An id that is not live starts a new life.

        Args:
            slots: as for `PagedKVCache.write`; a token whose slot is -1 is left out.

        Raises:
            ValueError: a slot outside the cache or named twice, a negative position, too large a number.
        """
        flat = flat_slots(slots, self.cache.num_blocks, self.cache.block_size)  # [T]
        if first_position < 0:
            raise ValueError(f"position {first_position} is negative: the first token is number 0.")
        end = first_position + len(flat)
        _check_limit("position", end - 1)
        number = self._numbers.get(request_id, len(self._ids))
        _check_limit("request", number)
        positions = np.arange(first_position, end)
        for begin in range(0, len(flat), CHUNK):
            part = slice(begin, begin + CHUNK)
            self._write_records(number, positions[part], flat[part])
        if request_id not in self._numbers:
            self._start(request_id)
        self._writers[request_id] = _at_least(self._writers[request_id], end)
        self._writers[request_id][positions[flat != SKIP]] = number

    def fork(self, parent_id: Hashable, child_id: Hashable) -> None:
        """From now on `child_id` has to hold the parent's content so far, and then its own.

        Raises:
            KeyError: nothing was written for the parent. ValueError: the child is live.
        """
        self._check_live(parent_id)
        if child_id in self._numbers:
            raise ValueError(f"cannot fork {parent_id!r} onto {child_id!r}: that request is live.")
        self._start(child_id)
        self._writers[child_id] = self._writers[parent_id].copy()

    def hit(self, request_id: Hashable, slots: Any) -> list[Hashable]:
        """A new request begins with tokens that a prefix cache found in these slots: it must hold what they
        hold now. Whether they are the right tokens, the caller can tell by whose they are.

        A slot that holds no whole record of its position counts as the request's own, never written: the
        audit will name it.

        Returns:
            by token, the id of the request that wrote it.

        Raises:
            ValueError: the request is live, or a slot is outside the cache.
        """
        if request_id in self._numbers:
            raise ValueError(f"{request_id!r} cannot begin with a hit: that request is live.")
        flat = flat_slots(slots, self.cache.num_blocks, self.cache.block_size)  # [T]
        _check_limit("request", len(self._ids))
        rows = torch.from_numpy(flat).to(self.cache.k.device)
        lanes = as_bits(self.cache.k[0].flatten(0, 1))[rows, 0].view(self.cache.k.dtype)  # [T, D]
        record = decode(lanes.float().cpu().numpy())
        self._start(request_id)
        whole = record["whole"] & (record["position"] == np.arange(len(flat))) & (flat != SKIP)
        known = whole & (record["request"] > NOBODY) & (record["request"] < self._numbers[request_id])
        numbers = np.where(known, record["request"], self._numbers[request_id])
        self._writers[request_id] = numbers.astype(np.int64)
        return [self._ids[number] for number in numbers.tolist()]

    def release(self, request_id: Hashable) -> None:
        """The request is gone: what it wrote is stale, except where a fork of it still holds it.

        Raises:
            KeyError: nothing was written for the request.
        """
        self._check_live(request_id)
        del self._numbers[request_id], self._writers[request_id]

    def request_ids(self) -> list[Hashable]:
        """The live requests: written here and not released."""
        return list(self._numbers)

    def audit(self, manager: Any) -> list[Mismatch]:
        """Walk the block table of every live request and compare each slot with what should be there.

        Only tokens below `manager.length(request_id)` count. The order is by request, position, layer, head,
        K before V. An empty list proves that each token's K and V is where the tables say.

        Args:
            manager: anything with `block_table(request_id)`, `length(request_id)` and `block_size`.

        Raises:
            ValueError: the manager does not know a request that was written and not released here.
        """
        names = Names(self._ids, cached(self._held_numbers))
        mismatches = []
        for request_id in self._numbers:
            mismatches += audit_walk(self.cache, self._walk(manager, request_id), names)
        return mismatches

    def _write_records(self, number: int, positions: np.ndarray, flat: np.ndarray) -> None:
        numbers = np.full(len(flat), number)
        for layer in range(self.cache.num_layers):
            k, v = stored_records(self.cache, numbers, positions, layer)  # [T, Hkv, D]
            self.cache.write(layer, flat, k, v)

    def _walk(self, manager: Any, request_id: Hashable) -> Walk:
        try:
            table, length = list(manager.block_table(request_id)), manager.length(request_id)
        except KeyError as error:
            raise ValueError(
                f"the manager does not know request {request_id!r}, whose content is live here: "
                f"call the writer's release({request_id!r}) when the manager releases it."
            ) from error
        writers = _at_least(self._writers[request_id], length)[:length]
        numbers = np.where(writers == NOBODY, self._numbers[request_id], writers)
        return walk_table(request_id, table, manager.block_size, numbers)

    def _held_numbers(self) -> set[int]:
        writers = np.concatenate([np.empty(0, np.int64), *self._writers.values()])
        return {*np.unique(writers).tolist(), *self._numbers.values()}

    def _start(self, request_id: Hashable) -> None:
        self._numbers[request_id] = len(self._ids)
        self._ids.append(request_id)
        self._writers[request_id] = np.empty(0, np.int64)

    def _check_live(self, request_id: Hashable) -> None:
        if request_id not in self._numbers:
            raise KeyError(f"no sentinels of request {request_id!r}: nothing was written, or it was released")


def _at_least(writers: np.ndarray, length: int) -> np.ndarray:
    """The array itself if it is long enough, else a longer one (at least doubled) with nobody in the rest."""
    if length <= len(writers):
        return writers
    grown = np.full(max(length, 2 * len(writers)), NOBODY, np.int64)
    grown[: len(writers)] = writers
    return grown


def _check_limit(field: str, number: int) -> None:
    if number >= LIMIT[field]:
        raise ValueError(f"{field} {number} is too large for a sentinel: at most {LIMIT[field] - 1}.")
