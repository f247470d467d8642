"""A plain read through the block table: the least that any decode path does, so the limit to compare with."""

from __future__ import annotations

import numpy as np
import torch
from numba import njit

from kvlab.cpu_decode import cut, flat, run_all
from kvlab.cpu_kernel import take


def read_blocks(
    k_cache: torch.Tensor, v_cache: torch.Tensor, block_tables: torch.Tensor, context_lens: torch.Tensor
) -> int:
    """Read K and V of every position once and add the bytes up as 64-bit numbers, on as many threads as
    `cpu_decode` and with its parts. The caches must be contiguous, a block a multiple of 8 bytes."""
    parts = cut(context_lens.tolist(), None, None, torch.get_num_threads())
    k, v = flat(k_cache).view(np.int64), flat(v_cache).view(np.int64)
    row = k_cache[0, 0].nbytes // 8
    totals = np.empty(len(parts), np.int64)
    run_all(read_all, parts, k, v, block_tables.numpy(), k_cache.shape[1], row, totals)
    return int(totals.sum())


@njit(nogil=True, cache=True)
def read(k, v, table, block_size, begin, end, row):
    """The sum of the positions begin .. end - 1; a position has `row` numbers in k and in v, both flat."""
    total = np.int64(0)
    position = begin
    while position < end:
        slot = position % block_size
        count = min(block_size - slot, end - position)
        first = (np.int64(table[position // block_size]) * block_size + slot) * row
        for numbers in (k[first : first + count * row], v[first : first + count * row]):
            for i in range(count * row):
                total += numbers[i]
        position += count
    return total


@njit(nogil=True, cache=True)
def read_all(counter, parts, k, v, tables, block_size, row, totals):
    """`read` parts until none is left, each part's sum into totals; counter and parts as for `walk_all`."""
    part = take(counter)
    while part < len(parts):
        seq, begin, end = parts[part]
        totals[part] = read(k, v, tables[seq], block_size, begin, end, row)
        part = take(counter)
