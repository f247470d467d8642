"""Memory that parallel samples of one prompt save by sharing its blocks: figure 15 of arXiv:2309.06180.

One prompt, n samples: the block manager forks the prompt's table n - 1 times and each sample appends its own
tokens, with copy-on-write in the prompt's last block when that is partial. The figure is

    saved = 1 - physical blocks / sum over the tables of their blocks

added up over every step of every group of samples, so a long answer counts for longer.

Assumption: the n samples of a prompt have EQUAL lengths, so all share until the last token. In truth some
stop early, after which fewer tables share the prompt; `equal_lengths=False` draws each length on its own,
to show by how much the assumption matters. Beam search is not modelled: what beams share depends on when they
diverge, and the paper gives no model of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from kvlab.block_manager import BlockManager
from kvlab.workloads import Workload


class Savings(NamedTuple):
    """Block-steps: blocks in use, added up over all steps. `unshared` counts each table by itself."""

    physical: int
    unshared: int
    copies: int

    @property
    def saved(self) -> float:
        """Share of the memory that sharing saved, 0 to 1."""
        return 1 - self.physical / self.unshared


def parallel_sampling(
    workload: Workload, samples: int, *, block_size: int = 16, equal_lengths: bool = True, seed: int = 0
) -> Savings:
    """The savings of `samples` answers to each prompt of the workload, on a real block manager.

    Raises:
        ValueError: fewer than 1 sample.
    """
    if samples < 1:
        raise ValueError(f"a prompt has at least 1 sample, not {samples}")
    rng = Random(seed)
    outputs = [request.output for request in workload.requests]
    total = Savings(0, 0, 0)
    for request in workload.requests:
        others = [request.output if equal_lengths else rng.choice(outputs) for _ in range(samples - 1)]
        group = sample_group(request.prompt, [request.output, *others], block_size)
        total = Savings(*(a + b for a, b in zip(total, group, strict=True)))
    return total


def sample_group(prompt: int, outputs: Sequence[int], block_size: int) -> Savings:
    """One prompt and its samples, a token each a step until each has its own number of output tokens."""
    blocks = len(outputs) * -(-(prompt + max(outputs)) // block_size)
    manager = BlockManager(blocks, block_size)
    manager.append(0, prompt)
    for sample in range(1, len(outputs)):
        manager.fork(0, sample)
    physical = unshared = copies = 0
    for step in range(max(outputs)):
        for sample in manager.request_ids():
            if outputs[sample] == step:
                manager.release(sample)
            else:
                copies += manager.append_slot(sample).copied_from is not None
        physical += manager.num_allocated
        unshared += sum(-(-manager.length(sample) // block_size) for sample in manager.request_ids())
    return Savings(physical, unshared, copies)
