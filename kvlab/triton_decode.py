"""Paged decode attention in Triton: one query token a sequence, its K and V scattered over blocks.

A program owns (sequence, KV head, split). It walks its share of the context in tiles of TILE positions, looks
each position up in the block table, and folds the tile into an online softmax (Milakov and Gimelshein, 2018):
K and V are read once, no score is stored. All query heads that share the KV head ride along. A second kernel
merges the splits. The same source runs compiled on a GPU, and in NumPy when TRITON_INTERPRET=1 is set before
triton is imported.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kvlab.split_kv import choose_splits
from kvlab.triton_setup import check_launch, default_config, processors

LOG2_E = 1.4426950408889634  # exp(x) = exp2(x * LOG2_E); GPUs have exp2
NO_WINDOW = 2**31 - 1
MIN_SPLIT = 64  # positions; a shorter part is not worth its merge


@triton.jit(do_not_specialize=["window"])
def decode_kernel(
    q, k_cache, v_cache, block_tables, context_lens, out, lse,
    score_scale, v_scale, window,
    q_seq, q_head, q_dim,  # strides, in elements
    k_block, k_slot, k_head, k_dim,
    v_block, v_slot, v_head, v_dim,
    table_seq, table_entry, lens_seq,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    ROWS: tl.constexpr, DIMS: tl.constexpr, TILE: tl.constexpr, COMPUTE: tl.constexpr,
):  # fmt: skip
    # 64-bit from the start: block * stride passes 2**31 in any cache of a useful size.
    seq, split = tl.program_id(1).to(tl.int64), tl.program_id(2)
    kv_head = (tl.program_id(0) // tl.cdiv(GROUP, ROWS)).to(tl.int64)
    rows = tl.program_id(0) % tl.cdiv(GROUP, ROWS) * ROWS + tl.arange(0, ROWS)  # query heads of this KV head
    heads = kv_head * GROUP + rows
    dims = tl.arange(0, DIMS)
    in_q = (rows < GROUP)[:, None] & (dims < HEAD_DIM)[None, :]
    q_at = q + seq * q_seq + heads[:, None] * q_head + dims[None, :].to(tl.int64) * q_dim
    query = tl.load(q_at, mask=in_q, other=0.0).to(COMPUTE)  # [ROWS, DIMS]

    # Tiles start at the window's first position, so one comparison masks both ends of the walk.
    length = tl.load(context_lens + seq * lens_seq).to(tl.int32)
    first = tl.maximum(length - window, 0)
    share = tl.cdiv(tl.cdiv(length - first, TILE), tl.num_programs(2)) * TILE  # positions a split
    begin = first + split * share
    end = tl.minimum(begin + share, length)

    top = tl.full([ROWS], -float("inf"), tl.float32)  # running maximum of the scores
    total = tl.zeros([ROWS], tl.float32)  # running sum of exp2(score - top)
    acc = tl.zeros([ROWS, DIMS], tl.float32)  # running sum of exp2(score - top) * v
    for start in range(begin, end, TILE):
        positions = start + tl.arange(0, TILE)
        inside = positions < end
        entry = block_tables + seq * table_seq + (positions // BLOCK_SIZE).to(tl.int64) * table_entry
        block = tl.load(entry, mask=inside, other=0).to(tl.int64)  # entries past the end are never followed
        slot = (positions % BLOCK_SIZE).to(tl.int64)
        k_at = k_cache + block * k_block + slot * k_slot + kv_head * k_head
        v_at = v_cache + block * v_block + slot * v_slot + kv_head * v_head
        # Masked, not multiplied away: an unused slot may hold NaN, and 0 * NaN is NaN.
        in_kv = inside[:, None] & (dims < HEAD_DIM)[None, :]
        keys = tl.load(
            k_at[:, None] + dims[None, :].to(tl.int64) * k_dim, mask=in_kv, other=0.0
        )  # [TILE, DIMS]
        values = tl.load(v_at[:, None] + dims[None, :].to(tl.int64) * v_dim, mask=in_kv, other=0.0)

        scores = tl.dot(query, tl.trans(keys.to(COMPUTE)), input_precision="ieee") * score_scale
        scores = tl.where(inside[None, :], scores, -float("inf"))  # [ROWS, TILE], in units of log 2
        new_top = tl.maximum(top, tl.max(scores, 1))  # finite: start < end, so a position is inside
        weights = tl.exp2(scores - new_top[:, None])
        rescale = tl.exp2(top - new_top)
        total = total * rescale + tl.sum(weights, 1)
        acc = acc * rescale[:, None] + tl.dot(weights.to(COMPUTE), values.to(COMPUTE), input_precision="ieee")
        top = new_top

    # An empty split: zeros with the weight exp2(-inf) = 0.
    total = tl.where(top == -float("inf"), 1.0, total)
    num_heads = tl.num_programs(0) // tl.cdiv(GROUP, ROWS) * GROUP
    part = (seq * num_heads + heads) * tl.num_programs(2) + split
    tl.store(lse + part, top + tl.log2(total), mask=rows < GROUP)
    result = (acc / total[:, None] * v_scale).to(out.dtype.element_ty)
    tl.store(out + part[:, None] * HEAD_DIM + dims[None, :], result, mask=in_q)


@triton.jit(do_not_specialize=["num_splits"])
def merge_kernel(
    parts, lse, out, num_splits, HEAD_DIM: tl.constexpr, DIMS: tl.constexpr, SPLITS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)  # one (sequence, query head)
    splits, dims = tl.arange(0, SPLITS), tl.arange(0, DIMS)
    top = tl.max(tl.load(lse + row * num_splits + splits, mask=splits < num_splits, other=-float("inf")), 0)
    top = tl.where(top == -float("inf"), 0.0, top)  # every split empty: -inf - -inf would be NaN
    total = 0.0
    acc = tl.zeros([DIMS], tl.float32)
    for split in range(num_splits):
        weight = tl.exp2(tl.load(lse + row * num_splits + split) - top)
        total += weight
        at = parts + (row * num_splits + split) * HEAD_DIM + dims
        acc += weight * tl.load(at, mask=dims < HEAD_DIM, other=0.0)
    result = acc / tl.where(total == 0.0, 1.0, total)
    tl.store(out + row * HEAD_DIM + dims, result.to(out.dtype.element_ty), mask=dims < HEAD_DIM)


INTERPRETED = not isinstance(decode_kernel, triton.JITFunction)


def triton_decode(q, k_cache, v_cache, tables, lens, *, window, num_splits, config=None, **scales):
    """`kvlab.paged_decode` without its checks of shapes and tables; config: another of `CONFIGS` to try."""
    check_launch(q, k_cache, num_splits, INTERPRETED)
    num_seqs, num_heads, head_dim = q.shape
    out = torch.empty_like(q, memory_format=torch.contiguous_format)  # [S, Hq, D]
    if not num_seqs:
        return out
    if num_splits is None:
        # On a GPU the lengths stay there: asking for them would wait. The table's width bounds them.
        longest = tables.shape[1] * k_cache.shape[1] if q.is_cuda else int(lens.max())
        tiles = triton.cdiv(min(longest, window or longest), MIN_SPLIT)
        num_splits = choose_splits(num_seqs * k_cache.shape[2], tiles, processors(q.device))
    lse = q.new_empty(num_seqs, num_heads, num_splits, dtype=torch.float32)  # log2 of each part's sum
    parts = out if num_splits == 1 else q.new_empty(*lse.shape, head_dim, dtype=torch.float32)
    tensors = (q, k_cache, v_cache, tables, lens, parts, lse)
    grid, arguments, options = decode_launch(tensors, window=window, config=config, **scales)
    decode_kernel[grid](*arguments, **options)
    if num_splits > 1:
        sizes = (num_splits, head_dim, options["DIMS"], triton.next_power_of_2(num_splits))
        merge_kernel[(num_seqs * num_heads,)](parts, lse, out, *sizes)
    return out


def decode_launch(tensors, *, scale, k_scale, v_scale, window, config):
    """The decode kernel's (grid, arguments, options); tensors: its seven, the number of splits is lse's."""
    q, k_cache, lse = tensors[0], tensors[1], tensors[6]
    group, head_dim = q.shape[1] // k_cache.shape[2], q.shape[2]
    rows = min(64, max(16, triton.next_power_of_2(group)))  # a matrix instruction takes 16 rows or more
    held = q.dtype if k_cache.dtype == torch.float8_e4m3fn else k_cache.dtype  # every type of q holds float8
    compute = torch.promote_types(q.dtype, held)
    config = config or default_config(head_dim, rows, compute.itemsize)
    options = dict(zip(("TILE", "num_warps", "num_stages"), config, strict=True))
    options |= {"GROUP": group, "HEAD_DIM": head_dim, "BLOCK_SIZE": k_cache.shape[1], "ROWS": rows}
    options |= {"DIMS": max(16, triton.next_power_of_2(head_dim))}
    # The interpreter computes bfloat16 sums and products from their bit patterns: float32 there.
    options["COMPUTE"] = tl.float32 if INTERPRETED else getattr(tl, str(compute).removeprefix("torch."))
    numbers = (float(scale * k_scale * LOG2_E), float(v_scale), min(window or NO_WINDOW, NO_WINDOW))
    strides = [stride for tensor in tensors[:5] for stride in tensor.stride()]
    grid = (k_cache.shape[2] * triton.cdiv(group, rows), q.shape[0], lse.shape[2])
    return grid, (*tensors, *numbers, *strides), options
