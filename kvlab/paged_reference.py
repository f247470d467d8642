"""Paged decode attention in plain torch: walks the block tables, all sequences and heads at once."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np
import torch

from kvlab.online_softmax import NOTHING_YET, Partial, merge, partial

# Positions read at a time. Small blocks are taken several together, so that a walk over blocks of 1 costs no
# more steps than one over blocks of 16.
TILE = 256


def reference_decode(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_tables: torch.Tensor,
    context_lens: torch.Tensor,
    *,
    scale: float,
    window: int | None,
    k_scale: float,
    v_scale: float,
    num_splits: int | None,
) -> torch.Tensor:
    """`kvlab.paged_decode` without its checks; computes in float32, or in float64 for a float64 q.

    num_splits: the logical blocks of the longest sequence are cut into that many ranges, each is walked on
    its own, and the partial results are merged, as a split-KV kernel does. None: one range.
    """
    num_seqs, num_q_heads, head_dim = q.shape
    block_size, num_kv_heads = k_cache.shape[1:3]
    tables, counts = _plan(block_tables, context_lens, block_size, window)
    if not counts.any():
        return torch.zeros_like(q)
    # Query heads h * group .. (h + 1) * group - 1 read KV head h.
    grouped = q.reshape(num_seqs, num_kv_heads, num_q_heads // num_kv_heads, head_dim)
    compute = torch.float64 if q.dtype == torch.float64 else torch.float32
    grouped = grouped.to(compute) * (scale * k_scale)  # [S, Hkv, G, D]
    needed = np.flatnonzero(counts.any(0)) // block_size
    first, last = int(needed[0]), int(needed[-1]) + 1
    splits = min(num_splits or 1, last - first)
    edges = [first + (last - first) * i // splits for i in range(splits + 1)]
    parts = [_walk(grouped, k_cache, v_cache, tables, counts, range(*ends)) for ends in pairwise(edges)]
    output = reduce(merge, parts).output() * v_scale  # [S, Hkv, G, D]
    return output.reshape(q.shape).to(q.dtype)  # [S, Hq, D]


def blocks_used(num_blocks: int, block_size: int, context_lens: np.ndarray, window: int | None) -> np.ndarray:
    """Which of the first `num_blocks` logical blocks hold positions that count: bool [S, num_blocks]."""
    positions = positions_used(num_blocks * block_size, context_lens, window)
    return positions.reshape(len(context_lens), num_blocks, block_size).any(-1)


def positions_used(num_positions: int, context_lens: np.ndarray, window: int | None) -> np.ndarray:
    """Which positions a sequence's last token attends to: bool [S, num_positions]."""
    positions = np.arange(num_positions)
    lens = context_lens[:, None]  # [S, 1]
    return (positions < lens) & (positions >= (0 if window is None else lens - window))


def _plan(
    block_tables: torch.Tensor, context_lens: torch.Tensor, block_size: int, window: int | None
) -> tuple[torch.Tensor, np.ndarray]:
    """Block ids that are safe to read, [S, max_blocks], and which positions count, bool [S, max_blocks * B].

    Entries that are not used are never followed: they become block 0, and nothing read there counts.
    """
    lens = context_lens.cpu().numpy()
    width = block_tables.shape[1]
    counts = positions_used(width * block_size, lens, window)  # [S, max_blocks * B]
    used = torch.from_numpy(blocks_used(width, block_size, lens, window)).to(block_tables.device)
    return torch.where(used, block_tables, 0), counts


def _walk(
    grouped: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    tables: torch.Tensor,
    counts: np.ndarray,
    blocks: range,
) -> Partial:
    """Attention of every query head over the positions that count in these logical blocks."""
    block_size = k_cache.shape[1]
    stride = max(1, TILE // block_size)
    running = None
    for begin in range(blocks.start, blocks.stop, stride):
        end = min(begin + stride, blocks.stop)
        masked = torch.from_numpy(~counts[:, begin * block_size : end * block_size]).to(grouped.device)
        keys = _read(k_cache, tables[:, begin:end], grouped.dtype)  # [S, Hkv, T, D]
        values = _read(v_cache, tables[:, begin:end], grouped.dtype)  # [S, Hkv, T, D]
        scores = grouped @ keys.transpose(-1, -2)  # [S, Hkv, G, T]
        scores = scores.masked_fill(masked[:, None, None], NOTHING_YET)
        # A weight of 0 does not silence a NaN, so values that do not count are replaced, not multiplied away.
        values = values.masked_fill(masked[:, None, :, None], 0.0)
        piece = partial(scores, values)
        running = piece if running is None else merge(running, piece)
    return running


def _read(cache: torch.Tensor, blocks: torch.Tensor, compute: torch.dtype) -> torch.Tensor:
    """All slots of these blocks. cache: [N, B, Hkv, D]; blocks: [S, n]; returns [S, Hkv, n * B, D]."""
    slots = cache[blocks]  # [S, n, B, Hkv, D]
    return slots.flatten(1, 2).transpose(1, 2).to(compute)
