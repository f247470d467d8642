"""Paged decode attention in plain torch: walks the block tables, all sequences and heads at once."""

from __future__ import annotations

from itertools import pairwise

import torch

from kvlab.online_softmax import NOTHING_YET, Partial, merge, partial

# Small blocks are taken several at a time, so that a walk over blocks of 1 is not 64 times as long.
TILE = 64


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
    num_kv_heads = k_cache.shape[2]
    compute = torch.float64 if q.dtype == torch.float64 else torch.float32
    # Query heads h * group .. (h + 1) * group - 1 read KV head h.
    grouped = q.to(compute).view(num_seqs, num_kv_heads, num_q_heads // num_kv_heads, head_dim)
    grouped = grouped * (scale * k_scale)  # [S, Hkv, G, D]
    starts = _first_positions(context_lens, window)  # [S]
    first, last = _walked_blocks(starts, context_lens, k_cache.shape[1])
    splits = min(num_splits or 1, max(last - first, 1))
    edges = [first + (last - first) * i // splits for i in range(splits + 1)]
    result = _nothing(grouped)
    for begin, end in pairwise(edges):
        part = _walk(grouped, k_cache, v_cache, block_tables, context_lens, window, range(begin, end))
        result = merge(result, part)
    return (result.output() * v_scale).reshape(q.shape).to(q.dtype)  # [S, Hq, D]


def blocks_used(
    logical: torch.Tensor, block_size: int, context_lens: torch.Tensor, window: int | None
) -> torch.Tensor:
    """Which logical blocks hold positions that count: bool [S, number of blocks]. logical: block numbers."""
    first = logical * block_size
    starts = _first_positions(context_lens, window)[:, None]  # [S, 1]
    return (first + block_size > starts) & (first < context_lens[:, None])


def _first_positions(context_lens: torch.Tensor, window: int | None) -> torch.Tensor:
    return torch.zeros_like(context_lens) if window is None else (context_lens - window).clamp(min=0)


def _walked_blocks(starts: torch.Tensor, ends: torch.Tensor, block_size: int) -> tuple[int, int]:
    """First and past-last logical block that any sequence needs."""
    live = ends > starts
    if not live.any():
        return 0, 0
    return int(starts[live].min()) // block_size, -(-int(ends.max()) // block_size)


def _walk(
    grouped: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_tables: torch.Tensor,
    ends: torch.Tensor,
    window: int | None,
    blocks: range,
) -> Partial:
    """Attention of every query head over the part of its sequence that lies in these logical blocks."""
    block_size, starts = k_cache.shape[1], _first_positions(ends, window)
    stride = max(1, TILE // block_size)
    running = _nothing(grouped)
    for first in range(blocks.start, blocks.stop, stride):
        logical = torch.arange(first, min(first + stride, blocks.stop), device=grouped.device)
        positions = (
            logical[:, None] * block_size + torch.arange(block_size, device=grouped.device)
        ).flatten()
        counts = (positions >= starts[:, None]) & (positions < ends[:, None])  # [S, T]
        # Entries that are not used are never followed: block 0 is read instead, and nothing there counts.
        used = blocks_used(logical, block_size, ends, window)  # [S, tile]
        physical = torch.where(used, block_tables[:, logical], 0)  # [S, tile]
        keys = _tile(k_cache, physical, grouped.dtype)  # [S, Hkv, T, D]
        values = _tile(v_cache, physical, grouped.dtype)  # [S, Hkv, T, D]
        scores = grouped @ keys.transpose(-1, -2)  # [S, Hkv, G, T]
        scores = scores.masked_fill(~counts[:, None, None], NOTHING_YET)
        # A weight of 0 does not silence a NaN, so values that do not count are replaced, not multiplied away.
        values = values.masked_fill(~counts[:, None, :, None], 0.0)
        running = merge(running, partial(scores, values))
    return running


def _tile(cache: torch.Tensor, physical: torch.Tensor, compute: torch.dtype) -> torch.Tensor:
    """The slots of these blocks as [S, Hkv, T, D]. physical: [S, tile]; cache: [N, B, Hkv, D]."""
    blocks = cache[physical]  # [S, tile, B, Hkv, D]
    return blocks.flatten(1, 2).transpose(1, 2).to(compute)


def _nothing(grouped: torch.Tensor) -> Partial:
    none = torch.full_like(grouped[..., 0], NOTHING_YET)  # [S, Hkv, G]
    return Partial(none, torch.zeros_like(none), torch.zeros_like(grouped))
