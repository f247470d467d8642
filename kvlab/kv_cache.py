"""The K and V tensors: in blocks that all requests share, and, as before paging, in one piece a sequence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from kvlab.block_table import BlockCopy
from kvlab.kv_checks import check_distinct, check_new, check_tokens
from kvlab.slots import SKIP, flat_slots


class PagedKVCache:
    """K and V of every layer, in blocks that all requests share.

    The cache knows nothing of requests: a block manager says which slot a token's K and V go to.
    A fresh cache holds zeros.

    Attributes:
        k, v: [num_layers, num_blocks, block_size, num_kv_heads, head_dim].
        nbytes: size of both in bytes.

    Raises:
        ValueError: a size below 1, or a dtype other than float32, bfloat16, float16 and float8_e4m3fn.
    """

    def __init__(
        self,
        num_layers: int,
        num_blocks: int,
        block_size: int,
        num_kv_heads: int,
        head_dim: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ):
        shape = (num_layers, num_blocks, block_size, num_kv_heads, head_dim)
        check_new(shape, dtype)
        self.num_layers, self.num_blocks, self.block_size, self.num_kv_heads, self.head_dim = shape
        self.dtype = dtype
        self.k = torch.zeros(shape, dtype=dtype, device=device)  # [L, N, B, Hkv, D]
        self.v = torch.zeros(shape, dtype=dtype, device=device)  # [L, N, B, Hkv, D]

    @property
    def device(self) -> torch.device:
        return self.k.device

    @property
    def nbytes(self) -> int:
        return self.k.nbytes + self.v.nbytes

    def write(self, layer: int, slots: Any, k: torch.Tensor, v: torch.Tensor) -> None:
        """Put each token's K and V into its slot, in one layer. Other slots stay as they are.

        Everything is checked before the first byte is written, so a refused write changes nothing.

        Args:
            slots: one a token: a sequence of `Slot` or `(block, offset)`, or a 1-D sequence, array or tensor
                of flat slots, block * block_size + offset, in which -1 skips the token.
            k, v: [T, num_kv_heads, head_dim], of the cache's dtype and on its device.

        Raises:
            ValueError: a layer or slot outside the cache, a slot named twice, or a K or V of another shape,
                dtype or device.
        """
        self._check_layer(layer)
        flat = flat_slots(slots, self.num_blocks, self.block_size)
        wanted = (len(flat), self.num_kv_heads, self.head_dim)
        check_tokens("k", k, wanted, self.k)
        check_tokens("v", v, wanted, self.v)
        kept = np.flatnonzero(flat != SKIP)
        check_distinct(flat[kept], self.block_size)
        if len(kept) < len(flat):
            rows = torch.from_numpy(kept).to(self.device)
            k, v = k[rows], v[rows]
        index = torch.from_numpy(flat[kept]).to(self.device)
        for whole, tokens in ((self.k, k), (self.v, v)):
            as_bits(whole[layer].flatten(0, 1))[index] = as_bits(tokens)  # [N * B, Hkv, D]

    def copy(self, copies: Iterable[BlockCopy]) -> None:
        """Carry out a step's block copies, K and V, in all layers, before anything of that step is written.

        The copies have the effect of being done one after another, in the order given, so a destination may
        be the source of a later copy. They are one gather and one scatter all the same.

        Args:
            copies: `BlockCopy(source, destination, num_slots)`: the destination's first `num_slots` slots are
                replaced; what lies behind them is not touched.

        Raises:
            ValueError: a block outside the cache, a block copied onto itself, or a `num_slots` outside
                1 .. block_size. Nothing was copied then.
        """
        copies = [BlockCopy(*copy) for copy in copies]
        for copy in copies:
            self._check_copy(copy)
        if not copies:
            return
        destinations, origins = _resolve(copies, self.block_size)
        to = torch.from_numpy(destinations).to(self.device)
        origin = torch.from_numpy(origins).to(self.device)
        for whole in (self.k, self.v):
            slots = as_bits(whole.flatten(1, 2))  # [L, N * B, Hkv, D]
            slots[:, to] = slots[:, origin]

    def gather(
        self, layer: int, block_table: Sequence[int], length: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One sequence's K and V in logical order, as copies: (k, v), each [length, num_kv_heads, head_dim].

        Raises:
            IndexError: `length` is more than the table's blocks hold.
            ValueError: a layer or block outside the cache.
        """
        self._check_layer(layer)
        if not 0 <= length <= len(block_table) * self.block_size:
            raise IndexError(
                f"length {length} does not fit the table {list(block_table)}: {len(block_table)} blocks of "
                f"{self.block_size} hold {len(block_table) * self.block_size} tokens."
            )
        used = [int(block) for block in block_table[: -(-length // self.block_size)]]
        for block in used:
            self._check_block(block)
        blocks = torch.tensor(used, dtype=torch.int64, device=self.device)
        return tuple(whole[layer][blocks].flatten(0, 1)[:length] for whole in (self.k, self.v))

    def _check_layer(self, layer: int) -> None:
        if not 0 <= layer < self.num_layers:
            raise ValueError(f"layer {layer} is outside the cache: layers are 0 to {self.num_layers - 1}.")

    def _check_block(self, block: int, what: str = "block") -> None:
        if not 0 <= block < self.num_blocks:
            raise ValueError(f"{what} {block} is outside the cache: blocks are 0 to {self.num_blocks - 1}.")

    def _check_copy(self, copy: BlockCopy) -> None:
        self._check_block(copy.source, "copy source")
        self._check_block(copy.destination, "copy destination")
        if copy.source == copy.destination:
            raise ValueError(
                f"block {copy.source} is copied onto itself: source and destination must differ."
            )
        if not 1 <= copy.num_slots <= self.block_size:
            raise ValueError(
                f"num_slots {copy.num_slots} of the copy from block {copy.source} to {copy.destination} "
                f"must be 1 to {self.block_size}."
            )


class ContiguousKVCache:
    """K and V of one sequence; every append makes a longer tensor and copies the old one into it.

    Attributes:
        bytes_copied: bytes of tokens that were already in the cache and had to be moved, so far. n appends of
            one token move n (n - 1) / 2 tokens.
        peak_bytes: the most that was ever allocated at once. While a layer grows, its old and its new tensors
            exist together.

    Raises:
        ValueError: a size below 1 or an unsupported dtype.
    """

    def __init__(
        self,
        num_layers: int,
        num_kv_heads: int,
        head_dim: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ):
        check_new((num_layers, num_kv_heads, head_dim), dtype)
        self._k = [
            torch.empty(0, num_kv_heads, head_dim, dtype=dtype, device=device) for _ in range(num_layers)
        ]
        self._v = [torch.empty_like(k) for k in self._k]
        self.dtype = dtype
        self.bytes_copied = 0
        self.peak_bytes = 0

    @property
    def length(self) -> int:
        """Tokens that every layer holds; during a step the first layers are ahead of it."""
        return min(k.shape[0] for k in self._k)

    @property
    def nbytes(self) -> int:
        """Bytes that the cache holds now."""
        return sum(tensor.nbytes for tensor in (*self._k, *self._v))

    def append(self, layer: int, k: torch.Tensor, v: torch.Tensor) -> None:
        """Add tokens to one layer. k, v: [T, num_kv_heads, head_dim].

        Raises:
            ValueError: no such layer, or a K or V of another shape, dtype or device.
        """
        old_k, old_v = self.get(layer)
        wanted = (k.shape[0] if k.ndim else 0, *old_k.shape[1:])
        check_tokens("k", k, wanted, old_k)
        check_tokens("v", v, wanted, old_v)
        new_k, new_v = torch.cat([old_k, k]), torch.cat([old_v, v])  # [length + T, Hkv, D]
        self.bytes_copied += old_k.nbytes + old_v.nbytes
        self.peak_bytes = max(self.peak_bytes, self.nbytes + new_k.nbytes + new_v.nbytes)
        self._k[layer], self._v[layer] = new_k, new_v

    def get(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The layer's (k, v), each [tokens so far, num_kv_heads, head_dim].

        Raises:
            ValueError: no such layer.
        """
        if not 0 <= layer < len(self._k):
            raise ValueError(f"layer {layer} is outside the cache: layers are 0 to {len(self._k) - 1}.")
        return self._k[layer], self._v[layer]


def _resolve(copies: Sequence[BlockCopy], block_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Flat destination slots and the slot each one's content comes from, as it was before the first copy."""
    content: dict[int, np.ndarray] = {}
    for source, destination, num_slots in copies:
        for block in (source, destination):
            if block not in content:
                content[block] = block * block_size + np.arange(block_size)
        content[destination][:num_slots] = content[source][:num_slots]
    touched = [block * block_size + np.arange(block_size) for block in content]
    slots = np.concatenate(touched)
    origins = np.concatenate(list(content.values()))
    changed = slots != origins
    return slots[changed], origins[changed]


def as_bits(tensor: torch.Tensor) -> torch.Tensor:
    """float8 as the bytes it is, since not every device can index-assign float8; other dtypes as they are."""
    return tensor.view(torch.uint8) if tensor.dtype == torch.float8_e4m3fn else tensor
