"""What a KV cache accepts: sizes, dtypes, and the K and V of new tokens. Each refusal says both sides."""

from __future__ import annotations

import numpy as np
import torch

KV_DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn)


def check_new(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """ValueError unless every size is at least 1 and the dtype is one that a KV cache can have."""
    if min(shape) < 1:
        raise ValueError(f"every size of the cache must be at least 1, got {list(shape)}.")
    if dtype not in KV_DTYPES:
        raise ValueError(f"a KV cache can be {', '.join(map(str, KV_DTYPES))}, not {dtype}.")


def check_tokens(name: str, given: torch.Tensor, wanted: tuple[int, ...], cache: torch.Tensor) -> None:
    """ValueError unless new tokens have the wanted shape and the dtype and device of the cache's tensor."""
    if tuple(given.shape) != wanted:
        raise ValueError(
            f"{name} has shape {list(given.shape)}, but these slots and this cache need {list(wanted)}: "
            "[tokens, num_kv_heads, head_dim]."
        )
    if given.dtype != cache.dtype:
        raise ValueError(f"{name} is {given.dtype}, the cache is {cache.dtype}: convert it with .to().")
    if given.device != cache.device:
        raise ValueError(f"{name} is on {given.device}, the cache is on {cache.device}: move it with .to().")


def check_distinct(flat: np.ndarray, block_size: int) -> None:
    """ValueError when one write names a slot twice."""
    if len(np.unique(flat)) < len(flat):
        numbers, counts = np.unique(flat, return_counts=True)
        block, offset = divmod(int(numbers[counts > 1][0]), block_size)
        raise ValueError(
            f"block {block} slot {offset} is named twice in one write: one slot holds one token."
        )
