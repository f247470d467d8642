"""The online softmax drawn from a learner's own merge: its numbers, right or wrong, block by block."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from kvlab.online_softmax import TraceStep, online_softmax_trace


def trace_with(
    merge: Callable,
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_table: Sequence[int],
    length: int,
) -> list[TraceStep]:
    """`kvlab.online_softmax_trace`, with the running values that `merge(a, b)` computes.

    Args:
        merge: merges two partial results (m [], l [], w [D]).
        q: [D]. k_cache, v_cache: [num_blocks, B, D]. block_table, length: the sequence.
    """
    running = torch.tensor(-math.inf), torch.tensor(0.0), torch.zeros(len(q))
    steps = []
    for step in online_softmax_trace(q, k_cache, v_cache, block_table, length):
        scores = torch.tensor(step.scores)  # [T]
        offsets = [position % v_cache.shape[1] for position in step.positions]
        weights = torch.exp(scores - scores.max())  # [T]
        piece = scores.max(), weights.sum(), weights @ v_cache[step.block, offsets]
        running = merge(running, piece)
        output = (running[2] / running[1]).tolist()
        steps.append(
            step._replace(
                running_max=float(running[0]), running_sum=float(running[1]), partial_output=tuple(output)
            )
        )
    return steps
