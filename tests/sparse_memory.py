"""A cache that is larger than memory: address space that only takes room where it is written."""

import mmap
import sys

import numpy as np
import pytest
import torch

BLOCK_STRIDE = 2**30  # numbers from block to block: block 3 begins past 2**31


def far_apart(cache):
    """The same cache [4, B, Hkv, D] of a 2-byte dtype, with its blocks BLOCK_STRIDE numbers apart."""
    if sys.platform != "linux":
        pytest.skip("needs Linux: memory that is reserved and not taken")
    assert len(cache) == 4 and cache.element_size() == 2
    no_reserve = getattr(mmap, "MAP_NORESERVE", 0x4000)  # named since Python 3.13
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve
    room = mmap.mmap(-1, 2 * 4 * BLOCK_STRIDE, flags=flags)
    storage = torch.from_numpy(np.frombuffer(room, dtype=np.int16)).view(cache.dtype)
    far = storage.as_strided(cache.shape, (BLOCK_STRIDE, *cache.stride()[1:]))
    return far.copy_(cache)
