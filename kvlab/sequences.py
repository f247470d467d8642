"""Where a decoder's sequences keep their K and V: each in tensors of its own, or all in one paged cache.

Both classes have one interface. The decoder opens a step, and inside it, layer by layer, writes and attends:

    with sequences.step({"A": [5, 7, 9], "B": [8]}) as batch:    # the new tokens of each request
        batch.token_ids, batch.counts                   # those to compute, A's first, and how many of each
        batch.positions                                 # [T], of the same
        batch.write(layer, k, v)                        # k, v [T, Hkv, D]
        batch.attend(layer, q)                          # q and result [T, Hq, D]

A clean exit makes the tokens part of the sequences; an exception leaves the sequences as they were.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

from kvlab.attention import paged_decode
from kvlab.block_table import BlockCopy
from kvlab.contiguous_sequences import ContiguousSequences, new_positions
from kvlab.kv_cache import PagedKVCache
from kvlab.manager_steps import ManagerError, check_length, checked_table, grow, require_interface
from kvlab.prefill import causal_attention
from kvlab.prefix_cache import ExtraKeys
from kvlab.weights import DecoderConfig

__all__ = ["ContiguousSequences", "PagedSequences"]


class PagedSequences:
    """All sequences share one paged cache, and a block manager decides the slots: ours or anybody's.

    Args:
        manager: any object with the smallest interface: append_slot (giving a Slot or (block, offset)),
            release, block_table, length, free_order, num_blocks, block_size. With `reserve`, a step is all or
            nothing; without, requests that were growing when a step failed must be released.
        backend: which `paged_decode` attends for requests that bring one token.

    With a manager that caches prefixes, tokens whose K and V it finds are neither computed nor written;
    `extra_keys[request_id]` says what else a new request's K and V depend on. `num_computed` counts the
    tokens that were computed.

    `copies` are those that copy-on-write asked for in the last step, carried out in one call before anything
    was written; `bytes_copied` counts the bytes of K and V that they have moved in all steps.

    Raises:
        TypeError: the manager lacks something. Later on, ManagerError: it returned what cannot be.
    """

    def __init__(
        self,
        config: DecoderConfig,
        manager,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        backend: str = "reference",
    ):
        require_interface(manager)
        self.config, self.manager, self.backend = config, manager, backend
        self.cache = PagedKVCache(
            config.num_layers,
            manager.num_blocks,
            manager.block_size,
            config.num_kv_heads,
            config.head_dim,
            dtype,
            device,
        )
        self.extra_keys: dict[Hashable, ExtraKeys] = {}
        self.num_computed = 0
        self.copies: list[BlockCopy] = []
        self.bytes_copied = 0
        self._lengths: dict[Hashable, int] = {}
        self._half_grown: set[Hashable] = set()

    def request_ids(self) -> list[Hashable]:
        return list(dict.fromkeys([*self._lengths, *self._half_grown]))

    def length(self, request_id: Hashable) -> int:
        """Tokens of the request whose K and V are written; 0 for one that is not there."""
        return self._lengths.get(request_id, 0)

    @property
    def bytes_held(self) -> int:
        """Bytes of the blocks that the requests hold now, each block once."""
        tables = (self.manager.block_table(request_id) for request_id in self.request_ids())
        return (
            len({block for table in tables for block in table}) * self._bytes_a_slot * self.cache.block_size
        )

    @contextmanager
    def step(self, tokens: Mapping[Hashable, Sequence[int]]) -> Iterator[_PagedBatch]:
        """One step of the decoder; see the top of this file."""
        for request_id in tokens:
            self._check_before(request_id)
        try:
            with grow(self.manager, tokens, self._carry_out, self.extra_keys) as growths:
                parts = []
                for request_id, ids in tokens.items():
                    cached = growths[request_id].cached
                    before = self.length(request_id)
                    table = checked_table(self.manager, request_id, before + len(ids))
                    slots = growths[request_id].slots[cached:]
                    parts.append(_Part(before + cached, list(ids[cached:]), table, slots))
                yield _PagedBatch(self.cache, self.backend, parts)
        except BaseException:
            self._half_grown |= {request_id for request_id in tokens if self._is_ahead(request_id)}
            raise
        self.num_computed += sum(len(part.ids) for part in parts)
        for request_id, ids in tokens.items():
            self._lengths[request_id] = self.length(request_id) + len(ids)
            check_length(self.manager, request_id, self.length(request_id), is_new=False)

    def require_fork(self) -> None:
        """Raises TypeError if the manager cannot fork."""
        if not hasattr(self.manager, "fork"):
            raise TypeError(f"{type(self.manager).__name__} has no fork, so its blocks cannot be shared.")

    def fork(self, parent_id: Hashable, child_id: Hashable) -> None:
        """A second request with the parent's tokens, in shared blocks. TypeError if the manager cannot."""
        self.require_fork()
        self.manager.fork(parent_id, child_id)
        self._lengths[child_id] = self.length(parent_id)

    def release(self, request_id: Hashable) -> None:
        """Give the request's blocks back. What is wrong with the id, the manager says."""
        self.manager.release(request_id)
        self._lengths.pop(request_id, None)
        self._half_grown.discard(request_id)

    def _carry_out(self, copies: list[BlockCopy]) -> None:
        self.cache.copy(copies)
        self.copies = copies
        self.bytes_copied += sum(copy.num_slots for copy in copies) * self._bytes_a_slot

    @property
    def _bytes_a_slot(self) -> int:
        return self.cache.nbytes // (self.cache.num_blocks * self.cache.block_size)

    def _is_ahead(self, request_id: Hashable) -> bool:
        """Whether the manager has counted tokens of the failed step, since it cannot roll back."""
        try:
            return (self.manager.length(request_id) or 0) != self.length(request_id)
        except Exception:  # the failure of the step is what the caller must see
            return False

    def _check_before(self, request_id: Hashable) -> None:
        if request_id in self._half_grown:
            raise ManagerError(
                f"A step failed while {request_id!r} was growing, and {type(self.manager).__name__} cannot "
                "roll back: release it and feed its tokens again."
            )
        is_new = request_id not in self._lengths
        check_length(self.manager, request_id, self.length(request_id), is_new)


class _Part(NamedTuple):
    """One request's share of a step: the tokens to compute, from position `first` on."""

    first: int
    ids: list[int]
    table: list[int]
    slots: list


class _PagedBatch:
    def __init__(self, cache: PagedKVCache, backend: str, parts: list[_Part]):
        self._cache, self._backend, self._parts = cache, backend, parts
        self.counts = [len(part.ids) for part in parts]
        self.token_ids = [token for part in parts for token in part.ids]
        self.positions = new_positions([part.first for part in parts], self.counts)  # [T]
        flat = [block * cache.block_size + offset for part in parts for block, offset, _ in part.slots]
        self._slots = torch.tensor(flat)  # [T]
        starts = torch.tensor([0, *self.counts]).cumsum(0).tolist()
        placed = list(zip(starts, parts, strict=False))
        self._prefills = [(start, part) for start, part in placed if len(part.ids) > 1]
        singles = [(start, part) for start, part in placed if len(part.ids) == 1]
        rows = [start for start, _ in singles]
        self._rows = torch.tensor(rows, dtype=torch.long)  # [S], rows with one query
        tables = [torch.tensor(part.table, dtype=torch.int32) for _, part in singles]
        if singles:
            padded = torch.nn.utils.rnn.pad_sequence(tables, batch_first=True, padding_value=-1)
            self._block_tables = padded.to(cache.device)  # int32 [S, max_blocks]
            lengths = [part.first + 1 for _, part in singles]
            self._context_lens = torch.tensor(lengths, dtype=torch.int32, device=cache.device)  # [S]

    def write(self, layer: int, k: Tensor, v: Tensor) -> None:
        self._cache.write(layer, self._slots, k.to(self._cache.dtype), v.to(self._cache.dtype))

    def attend(self, layer: int, q: Tensor) -> Tensor:
        out = torch.empty_like(q)  # [T, Hq, D]
        if len(self._rows):
            k, v = self._cache.k[layer], self._cache.v[layer]  # each [num_blocks, B, Hkv, D]
            out[self._rows] = paged_decode(
                q[self._rows], k, v, self._block_tables, self._context_lens, backend=self._backend
            )
        for start, part in self._prefills:
            k, v = self._cache.gather(layer, part.table, part.first + len(part.ids))  # each [L, Hkv, D]
            rows = slice(start, start + len(part.ids))
            out[rows] = causal_attention(q[rows], k, v)  # [own T, Hq, D]
        return out
