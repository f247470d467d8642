"""Compiled FlexAttention over the same pages: a block mask that sends each sequence to its own blocks.

FlexAttention skips blocks of the pool by a sparse index, so its pages are at least `PAGE` slots; with smaller
blocks it has nothing to skip. It needs torch.compile: a GPU, or a C++ compiler on a CPU.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable

import torch

from kvlab.contenders import FLEX, Buffers, Field

PAGE = 128  # slots: FlexAttention's own default for a sparse block


def add_flex(field: Field, buffers: Buffers, *, wanted: bool) -> None:
    """Put FlexAttention, compiled, among the contenders, or say why it is left out."""
    why = why_not(buffers) if wanted else "it was not asked for (it compiles for some seconds a shape)"
    if why is None:
        try:
            run = flex_attention(buffers)
            run()
        except Exception as error:  # whatever torch's compiler makes of this machine
            why = f"it does not compile here ({type(error).__name__})"
        else:
            field.runs[FLEX] = run
            return
    field.left_out[FLEX] = why


def why_not(buffers: Buffers) -> str | None:
    """What keeps FlexAttention from these buffers, as a sentence's end; None when nothing is known to."""
    if buffers.shape.block_size % PAGE:
        return f"its pages are multiples of {PAGE} slots, and smaller blocks give it nothing to skip"
    if buffers.dtype == torch.float8_e4m3fn:
        return "it takes no float8"
    if buffers.q.device.type == "cpu" and not any(map(shutil.which, ("g++", "clang++", "c++"))):
        return "on a CPU it needs a C++ compiler, and there is none here"
    return None


def flex_attention(buffers: Buffers) -> Callable[[], torch.Tensor]:
    """A contender; its first call compiles for some seconds, and raises what the compiler raises."""
    from torch.nn.attention.flex_attention import flex_attention as flex

    shape = buffers.shape
    num_slots = shape.num_seqs * shape.blocks_per_seq * shape.block_size
    mask = paged_mask(buffers.tables, buffers.lens, shape.block_size, num_slots)
    compiled = torch.compile(flex, dynamic=False)
    q = buffers.q[:, :, None]  # [S, Hq, 1, D]

    def run() -> torch.Tensor:
        blocks = buffers.paged()  # [2, N, B, Hkv, D]
        k, v = blocks.flatten(1, 2).transpose(1, 2).unsqueeze(1)  # [1, Hkv, N * B, D] each
        return compiled(q, k, v, block_mask=mask, enable_gqa=True)[:, :, 0]  # [S, Hq, D]

    return run


def paged_mask(tables: torch.Tensor, lens: torch.Tensor, block_size: int, num_slots: int):
    """The block mask of one query a sequence over a pool of `num_slots` slots that all sequences share.

    Full blocks are listed apart from the last, partly filled one: only there is each slot asked about.
    """
    from torch.nn.attention.flex_attention import BlockMask

    num_seqs, width = tables.shape
    num_blocks = num_slots // block_size
    logical = torch.full((num_seqs, num_blocks), -1, dtype=torch.int32, device=tables.device)  # [S, N]
    order = torch.arange(width, dtype=torch.int32, device=tables.device)
    logical.scatter_(1, tables.long(), order.expand(num_seqs, -1))

    def inside(seq, head, query, slot):
        own = logical[seq, slot // block_size]
        return (own >= 0) & (own * block_size + slot % block_size < lens[seq])

    full, rest = lens // block_size, lens % block_size
    full_index = torch.zeros(num_seqs, 1, 1, num_blocks, dtype=torch.int32, device=tables.device)
    full_index[:, 0, 0, :width] = tables
    last_index = torch.zeros_like(full_index)
    last_index[:, 0, 0, 0] = tables.gather(1, full.clamp(max=width - 1).long()[:, None])[:, 0]
    return BlockMask.from_kv_blocks(
        (rest > 0).to(torch.int32).view(-1, 1, 1),
        last_index,
        full.to(torch.int32).view(-1, 1, 1),
        full_index,
        BLOCK_SIZE=(PAGE, block_size),
        mask_mod=inside,
        seq_lengths=(1, num_slots),
    )
