"""Softmax over pieces: attention over a part of the positions, and how two parts become one.

The formula is the online softmax of Milakov and Gimelshein (2018), which FlashAttention uses: keep the
largest score m, the sum of exp(score - m), and the sum of exp(score - m) * v; when a larger score turns up,
rescale both sums to it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

NOTHING_YET = -math.inf


class Partial(NamedTuple):
    """Attention over some of the positions, not yet divided by its sum.

    max, sum: [...]; weighted: [..., D] = sum of exp(score - max) * v. No position at all: -inf, 0 and zeros.
    """

    max: torch.Tensor
    sum: torch.Tensor
    weighted: torch.Tensor

    def output(self) -> torch.Tensor:
        """The attention output [..., D] over these positions; zeros where there were none."""
        divisor = torch.where(self.sum == 0, 1.0, self.sum)
        return self.weighted / divisor.unsqueeze(-1)


def partial(scores: torch.Tensor, values: torch.Tensor) -> Partial:
    """Attention over one piece.

    scores: [..., T], -inf where a position does not count (its value must be finite: 0 * NaN is NaN).
    values: [..., T, D], broadcastable to the scores' leading dimensions.
    """
    top = scores.amax(-1)  # [...]
    weights = torch.exp(scores - _finite(top).unsqueeze(-1))  # [..., T]
    return Partial(top, weights.sum(-1), weights @ values)


def merge(a: Partial, b: Partial) -> Partial:
    """Attention over the positions of both, each scaled from its own maximum to the common one."""
    top = torch.maximum(a.max, b.max)  # [...]
    scale_a, scale_b = torch.exp(a.max - _finite(top)), torch.exp(b.max - _finite(top))  # [...]
    weighted = a.weighted * scale_a.unsqueeze(-1) + b.weighted * scale_b.unsqueeze(-1)  # [..., D]
    return Partial(top, a.sum * scale_a + b.sum * scale_b, weighted)


def _finite(top: torch.Tensor) -> torch.Tensor:
    # -inf - -inf is NaN; with nothing seen yet any finite reference gives the weight 0 that is wanted.
    return torch.where(top == NOTHING_YET, 0.0, top)


class TraceStep(NamedTuple):
    """One block of the walk. Numbers are plain floats, so that pictures need no torch.

    block: physical block id; positions: the token numbers in it that count; scores: scale * q . k of each.
    running_max, running_sum, partial_output: after this block; partial_output [D] is the attention output
    over all positions so far.
    """

    block: int
    positions: tuple[int, ...]
    scores: tuple[float, ...]
    running_max: float
    running_sum: float
    partial_output: tuple[float, ...]


def online_softmax_trace(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_table: Sequence[int],
    length: int,
    *,
    scale: float | None = None,
    window: int | None = None,
) -> list[TraceStep]:
    """How one query head walks its block table: a step for each block that holds positions that count.

    Computed in float64. The last step's partial_output is the attention output; no step when length is 0.

    Args:
        q: [D], one query head. k_cache, v_cache: [num_blocks, block_size, D], the caches of its KV head.
        block_table: physical block ids in logical order; length: tokens in the sequence.
        scale: factor on q . k, 1 / sqrt(D) when None. window: only the last `window` positions count.

    Raises:
        IndexError: the length is more than the table's blocks hold.
    """
    block_size = k_cache.shape[1]
    if not 0 <= length <= len(block_table) * block_size:
        raise IndexError(
            f"length {length} does not fit the table {list(block_table)} of blocks of {block_size}."
        )
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    start = 0 if window is None else max(0, length - window)
    query = q.double()  # [D]
    running = Partial(query.new_tensor(NOTHING_YET), query.new_tensor(0.0), torch.zeros_like(query))
    steps = []
    for logical in range(start // block_size, -(-length // block_size)):
        block, first = int(block_table[logical]), logical * block_size
        positions = range(max(start, first), min(length, first + block_size))
        inside = slice(positions.start - first, positions.stop - first)
        scores = scale * (k_cache[block, inside].double() @ query)  # [T]
        running = merge(running, partial(scores, v_cache[block, inside].double()))
        output = tuple(running.output().tolist())
        steps.append(
            TraceStep(block, tuple(positions), tuple(scores.tolist()), *map(float, running[:2]), output)
        )
    return steps
