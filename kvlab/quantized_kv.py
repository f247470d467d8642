"""A KV cache in 8-bit floating point: half the bytes of float16, and what has to be done about it.

float8_e4m3fn has 1 sign, 4 exponent and 3 fraction bits: numbers up to 448, each within 1/16 of what was
meant, and nothing finer than 2**-9. Stored is x / scale, so a scale that maps a head's largest number to 448
wastes no range. The scale stays outside the cache: K's is multiplied into the query, V's into the output.
Larger numbers than the scale allows are stored as the largest one (saturation), as inference engines do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from kvlab.attention import paged_decode
from kvlab.block_table import BlockCopy
from kvlab.kv_cache import PagedKVCache

FP8 = torch.float8_e4m3fn
LARGEST = torch.finfo(FP8).max  # 448


def head_scales(tokens: torch.Tensor) -> torch.Tensor:
    """Each KV head's largest absolute number / 448. tokens: [T, Hkv, D]; returns float32 [Hkv]."""
    largest = tokens.float().abs().amax(dim=(0, 2))  # [Hkv]
    return torch.where(largest > 0, largest / LARGEST, 1.0)


def quantize(tokens: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """x / scale as float8, at most 448 in size. tokens: [T, Hkv, D]; scales: [Hkv]; returns [T, Hkv, D]."""
    scaled = tokens.float() / scales[:, None]  # [T, Hkv, D]
    return scaled.clamp(-LARGEST, LARGEST).to(FP8)


def dequantize(stored: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """What the stored numbers stand for, float32. stored: float8 [T, Hkv, D]; scales: [Hkv]."""
    return stored.float() * scales[:, None]  # [T, Hkv, D]


class QuantizedKVCache:
    """A `PagedKVCache` in float8_e4m3fn with one scale a layer and KV head, for K and for V.

    The scales are 1 until `set_scales` (or `calibrate`) is called; that has to come before anything is
    written, since what is stored keeps the scale it was written with.

    Attributes:
        k_scales, v_scales: float32 [num_layers, num_kv_heads].
        saturated: numbers that were too large for their scale so far.
    """

    def __init__(
        self,
        num_layers: int,
        num_blocks: int,
        block_size: int,
        num_kv_heads: int,
        head_dim: int,
        device: torch.device | str = "cpu",
    ):
        self.cache = PagedKVCache(num_layers, num_blocks, block_size, num_kv_heads, head_dim, FP8, device)
        self.num_blocks, self.block_size = num_blocks, block_size
        self.k_scales = torch.ones(num_layers, num_kv_heads, device=device)  # [L, Hkv]
        self.v_scales = torch.ones(num_layers, num_kv_heads, device=device)  # [L, Hkv]
        self.saturated = 0
        self._written: set[int] = set()

    @property
    def nbytes(self) -> int:
        """Bytes of K and V; the scales add 8 bytes a layer and head, whatever the number of blocks."""
        return self.cache.nbytes

    def set_scales(self, layer: int, k_scales: torch.Tensor, v_scales: torch.Tensor) -> None:
        """The layer's scales, one a KV head.

        Raises:
            ValueError: a scale that is not positive and finite, another number of heads, a layer that
                does not exist or that holds tokens already.
        """
        self.cache._check_layer(layer)
        if layer in self._written:
            raise ValueError(f"layer {layer} holds tokens already: set the scales before the first write")
        for name, scales in (("k_scales", k_scales), ("v_scales", v_scales)):
            if scales.shape != self.k_scales[layer].shape:
                heads = self.cache.num_kv_heads
                raise ValueError(f"{name} has shape {list(scales.shape)}, the cache has {heads} KV heads")
            if not (scales.isfinite() & (scales > 0)).all():
                raise ValueError(f"{name} must be positive and finite, got {scales.tolist()}")
        self.k_scales[layer], self.v_scales[layer] = k_scales, v_scales

    def calibrate(self, layer: int, k: torch.Tensor, v: torch.Tensor) -> None:
        """Scales from sample tokens, k and v [T, Hkv, D]: their largest number becomes the largest float8."""
        self.set_scales(layer, head_scales(k), head_scales(v))

    def write(self, layer: int, slots: Any, k: torch.Tensor, v: torch.Tensor) -> None:
        """Quantise each token's K and V into its slot. As `PagedKVCache.write`, from any float dtype."""
        k_scales, v_scales = self.k_scales[layer], self.v_scales[layer]  # each [Hkv]
        self.cache.write(layer, slots, quantize(k, k_scales), quantize(v, v_scales))
        self._written.add(layer)
        for tokens, scales in ((k, k_scales), (v, v_scales)):
            self.saturated += int((tokens.float().abs() > LARGEST * scales[:, None]).sum())

    def copy(self, copies: Iterable[BlockCopy]) -> None:
        """Carry out block copies, as `PagedKVCache.copy`; scales belong to heads, so nothing else changes."""
        self.cache.copy(copies)

    def gather(
        self, layer: int, block_table: Sequence[int], length: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One sequence's K and V as float32, dequantised: each [length, Hkv, D]."""
        k, v = self.cache.gather(layer, block_table, length)  # each float8 [length, Hkv, D]
        return dequantize(k, self.k_scales[layer]), dequantize(v, self.v_scales[layer])

    def decode(
        self, layer: int, q: torch.Tensor, block_tables: torch.Tensor, context_lens: torch.Tensor, **options
    ) -> torch.Tensor:
        """`paged_decode` on this layer; q and the result are [S, Hq, D].

        (q * k_scale) k8 = q (k_scale k8), and the softmax's weights leave V's scale alone, so both scales are
        applied outside the walk: once a head, not once a stored number.
        """
        group = q.shape[1] // self.cache.num_kv_heads
        k_scales = self.k_scales[layer].repeat_interleave(group)[:, None]  # [Hq, 1]
        v_scales = self.v_scales[layer].repeat_interleave(group)[:, None]  # [Hq, 1]
        k8, v8 = self.cache.k[layer], self.cache.v[layer]  # each [num_blocks, B, Hkv, D]
        out = paged_decode(q.float() * k_scales, k8, v8, block_tables, context_lens, **options)
        return (out * v_scales).to(q.dtype)  # [S, Hq, D]
