"""Slots as flat numbers: block * block_size + offset, the form that a kernel indexes the cache with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

SKIP = -1


def flat_slots(slots: Any, num_blocks: int, block_size: int) -> np.ndarray:
    """Slots in any accepted form as flat numbers, each checked.

    Args:
        slots: a sequence of `Slot` or `(block, offset)`; or a 1-D sequence, array or tensor of flat numbers,
            in which -1 means "skip this token".

    Returns:
        int64 [T].

    Raises:
        ValueError: a slot outside the cache, or something that is no slot.
    """
    if hasattr(slots, "_fields"):
        raise ValueError(f"slots is a single slot, {slots}: pass a list with one entry a token, [slot].")
    if isinstance(slots, Sequence) and len(slots) and isinstance(slots[0], Sequence):
        return _from_pairs(slots, num_blocks, block_size)
    numbers = np.asarray(slots.cpu() if hasattr(slots, "cpu") else slots)  # [T]
    if numbers.ndim != 1 or not (np.issubdtype(numbers.dtype, np.integer) or numbers.size == 0):
        raise ValueError(
            "slots must be (block, offset) pairs or a 1-D array of integers, "
            f"got {numbers.dtype} of shape {list(numbers.shape)}."
        )
    total = num_blocks * block_size
    outside = (numbers < SKIP) | (numbers >= total)
    if outside.any():
        raise ValueError(
            f"slot {numbers[outside][0]} is outside the cache: {num_blocks} blocks of {block_size} have the "
            f"slots 0 to {total - 1} (-1 skips a token)."
        )
    return numbers.astype(np.int64)


def _from_pairs(slots: Sequence, num_blocks: int, block_size: int) -> np.ndarray:
    try:
        numbers = np.array([[slot[0] for slot in slots], [slot[1] for slot in slots]])  # [2, T]
    except (IndexError, TypeError):
        numbers = np.array(None)
    if not np.issubdtype(numbers.dtype, np.integer):
        raise ValueError(f"every slot must be (block, offset), two integers; got {list(slots)[:4]}.")
    blocks, offsets = numbers.astype(np.int64)
    outside = (blocks < 0) | (blocks >= num_blocks) | (offsets < 0) | (offsets >= block_size)
    if outside.any():
        first = np.flatnonzero(outside)[0]
        raise ValueError(
            f"slot (block {blocks[first]}, offset {offsets[first]}) is outside the cache: blocks are 0 to "
            f"{num_blocks - 1}, offsets 0 to {block_size - 1}."
        )
    return blocks * block_size + offsets
