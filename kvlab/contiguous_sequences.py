"""Sequences that each keep their K and V in one piece; `kvlab.sequences` says how to use them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from kvlab.kv_cache import ContiguousKVCache
from kvlab.prefill import causal_attention
from kvlab.weights import DecoderConfig


def new_positions(firsts: list[int], counts: list[int]) -> Tensor:
    """[T], the positions of each request's new tokens: `counts[i]` from `firsts[i]` on."""
    return torch.cat([torch.arange(f, f + n) for f, n in zip(firsts, counts, strict=True)])  # [T]


class ContiguousSequences:
    """Each sequence has K and V tensors of its own that grow by concatenation: the baseline before paging.

    `bytes_copied` counts the bytes of K and V that forks have copied.
    """

    def __init__(
        self, config: DecoderConfig, *, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
    ):
        self.config, self.dtype, self.device = config, dtype, device
        self.caches: dict[Hashable, ContiguousKVCache] = {}
        self.bytes_copied = 0

    def request_ids(self) -> list[Hashable]:
        return list(self.caches)

    def length(self, request_id: Hashable) -> int:
        """Tokens of the request so far; 0 for one that is not there."""
        return self.caches[request_id].length if request_id in self.caches else 0

    @property
    def bytes_held(self) -> int:
        """Bytes of K and V that the requests hold now."""
        return sum(cache.nbytes for cache in self.caches.values())

    @contextmanager
    def step(self, tokens: Mapping[Hashable, Sequence[int]]) -> Iterator[_ContiguousBatch]:
        """One step of the decoder; see the top of `kvlab.sequences`."""
        before = {request_id: self.length(request_id) for request_id in tokens}
        new = {request_id: self._new_cache() for request_id in tokens if request_id not in self.caches}
        present = self.caches | new
        caches = [present[request_id] for request_id in tokens]
        try:
            yield _ContiguousBatch(caches, list(tokens.values()))
        except BaseException:
            for request_id in tokens.keys() & self.caches.keys():
                self.caches[request_id] = self._copy(self.caches[request_id], before[request_id])
            raise
        self.caches |= new

    def require_fork(self) -> None:
        """Nothing is required: whole caches can always be copied."""

    def fork(self, parent_id: Hashable, child_id: Hashable) -> None:
        """A second request with the parent's tokens, and a copy of all its K and V. KeyError, ValueError."""
        if child_id in self.caches:
            raise ValueError(f"Request {child_id!r} is there already: release it first.")
        parent = self._cache(parent_id)
        self.caches[child_id] = self._copy(parent, parent.length)
        self.bytes_copied += self.caches[child_id].nbytes

    def release(self, request_id: Hashable) -> None:
        """Forget the request. KeyError if it is not there."""
        self._cache(request_id)
        del self.caches[request_id]

    def _cache(self, request_id: Hashable) -> ContiguousKVCache:
        if request_id not in self.caches:
            raise KeyError(f"no request {request_id!r}: these are here: {self.request_ids()}")
        return self.caches[request_id]

    def _new_cache(self) -> ContiguousKVCache:
        c = self.config
        return ContiguousKVCache(c.num_layers, c.num_kv_heads, c.head_dim, self.dtype, self.device)

    def _copy(self, cache: ContiguousKVCache, length: int) -> ContiguousKVCache:
        copy = self._new_cache()
        for layer in range(self.config.num_layers):
            k, v = cache.get(layer)
            copy.append(layer, k[:length], v[:length])
        return copy


class _ContiguousBatch:
    def __init__(self, caches: list[ContiguousKVCache], tokens: list[Sequence[int]]):
        self._caches = caches
        self.counts = [len(ids) for ids in tokens]
        self.token_ids = [token for ids in tokens for token in ids]
        self.positions = new_positions([cache.length for cache in caches], self.counts)  # [T]

    def write(self, layer: int, k: Tensor, v: Tensor) -> None:
        parts = zip(self._caches, k.split(self.counts), v.split(self.counts), strict=True)
        for cache, own_k, own_v in parts:
            cache.append(layer, own_k.to(cache.dtype), own_v.to(cache.dtype))  # each [own T, Hkv, D]

    def attend(self, layer: int, q: Tensor) -> Tensor:
        parts = zip(self._caches, q.split(self.counts), strict=True)
        return torch.cat([causal_attention(own_q, *cache.get(layer)) for cache, own_q in parts])  # [T, Hq, D]
