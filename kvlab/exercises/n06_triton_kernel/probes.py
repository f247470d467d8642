"""What the interpreting process runs: small kernels around one part, and whole decodes.

Each probe is called with the module made of the learner's parts, and returns what JSON can carry.
"""

from __future__ import annotations

import mmap
from types import ModuleType

import torch
import triton

from kvlab.attention import attention_oracle

KERNELS = """
@triton.jit
def probe_bounds(out, length, TILE: tl.constexpr):
    split = tl.program_id(0)
    begin, end = split_bounds(length, split, tl.num_programs(0), TILE)
    tl.store(out + 2 * split, begin)
    tl.store(out + 2 * split + 1, end)


@triton.jit
def probe_addresses(
    table, first, count, block_stride, slot_stride, out, BLOCK_SIZE: tl.constexpr, TILE: tl.constexpr
):
    lanes = tl.arange(0, TILE)
    positions = first + lanes
    offsets = addresses(table, positions, lanes < count, block_stride, slot_stride, BLOCK_SIZE)
    tl.store(out + lanes, offsets.to(tl.int64))


@triton.jit
def probe_tile(cache, offsets, count, out, TILE: tl.constexpr, HEAD_DIM: tl.constexpr):
    lanes, dims = tl.arange(0, TILE), tl.arange(0, HEAD_DIM)
    tile = load_tile(cache, tl.load(offsets + lanes), dims, lanes < count)
    tl.store(out + lanes[:, None] * HEAD_DIM + dims[None, :], tile)


@triton.jit
def probe_update(
    scores, values, tiles, out, GROUP: tl.constexpr, TILE: tl.constexpr, HEAD_DIM: tl.constexpr
):
    heads, lanes, dims = tl.arange(0, GROUP), tl.arange(0, TILE), tl.arange(0, HEAD_DIM)
    top = tl.full([GROUP], -float("inf"), tl.float32)
    total = tl.zeros([GROUP], tl.float32)
    acc = tl.zeros([GROUP, HEAD_DIM], tl.float32)
    for tile in range(0, tiles):
        some = tl.load(scores + (tile * GROUP + heads[:, None]) * TILE + lanes[None, :])
        here = tl.load(values + (tile * TILE + lanes[:, None]) * HEAD_DIM + dims[None, :])
        top, total, acc = online_update(top, total, acc, some, here)
    tl.store(out + heads, top)
    tl.store(out + GROUP + heads, total)
    tl.store(out + 2 * GROUP + heads[:, None] * HEAD_DIM + dims[None, :], acc)
"""


def split_bounds(parts: ModuleType, cases: list) -> list:
    """cases: (length, number of splits, tile); gives [(begin, end) of each split] for each."""
    found = []
    for length, num_splits, tile in cases:
        out = torch.zeros(num_splits, 2, dtype=torch.int32)
        parts.probe_bounds[(num_splits,)](out, length, tile)
        found.append(out.tolist())
    return found


def addresses(parts: ModuleType, cases: list) -> list:
    """cases: (table, first position, how many are inside, block size, block stride, slot stride)."""
    found = []
    for table, first, count, block_size, block_stride, slot_stride in cases:
        # Behind the row lies what a kernel must never follow.
        row = torch.tensor([*table, *[-(10**6)] * 8], dtype=torch.int32)
        out = torch.zeros(8, dtype=torch.int64)
        parts.probe_addresses[(1,)](row, first, count, block_stride, slot_stride, out, block_size, 8)
        found.append(out.tolist())
    return found


def load_tile(parts: ModuleType, cases: list) -> list:
    """cases: (numbers of a cache, offsets of 4 lanes, how many are inside); D is 2."""
    found = []
    for numbers, offsets, count in cases:
        out = torch.zeros(4, 2)
        cache = torch.tensor(numbers)
        parts.probe_tile[(1,)](cache, torch.tensor(offsets, dtype=torch.int64), count, out, 4, 2)
        found.append(out.tolist())
    return found


def online_update(parts: ModuleType, cases: list) -> list:
    """cases: (scores [tiles, G, T], values [tiles, T, D]); gives (top, total, acc) after the last tile."""
    found = []
    for scores, values in cases:
        scores, values = torch.tensor(scores), torch.tensor(values)
        (tiles, group, tile), head_dim = scores.shape, values.shape[2]
        out = torch.zeros(group * (2 + head_dim))
        parts.probe_update[(1,)](scores, values, tiles, out, group, tile, head_dim)
        top, total, acc = out.split([group, group, group * head_dim])
        found.append([top.tolist(), total.tolist(), acc.reshape(group, head_dim).tolist()])
    return found


def reduce_splits(parts: ModuleType, cases: list) -> list:
    """cases: (lse of each split, output of each split [splits, D])."""
    found = []
    for lse, outputs in cases:
        count, head_dim = len(lse), len(outputs[0])
        out = torch.zeros(head_dim)
        room = triton.next_power_of_2(count)
        parts.reduce_kernel[(1,)](torch.tensor(outputs), torch.tensor(lse), out, count, head_dim, room)
        found.append(out.tolist())
    return found


def decode(parts, q, k_cache, v_cache, block_tables, context_lens, *, scale, num_splits=1, block_size=None):
    """`paged_decode` through the lesson's kernel; block_size: what the kernel is told, if not the truth."""
    num_seqs, num_heads, head_dim = q.shape
    num_kv_heads, group = k_cache.shape[2], num_heads // k_cache.shape[2]
    outputs = q.new_empty(num_seqs, num_heads, num_splits, head_dim, dtype=torch.float32)
    sums = q.new_empty(num_seqs, num_heads, num_splits, dtype=torch.float32)
    rows = max(16, triton.next_power_of_2(group))
    strides = (block_tables.stride(0), *k_cache.stride()[:3])
    constants = (group, rows, head_dim, block_size or k_cache.shape[1], 16)
    parts.decode_kernel[(num_seqs, num_kv_heads, num_splits)](
        q.contiguous(),
        k_cache,
        v_cache,
        block_tables,
        context_lens,
        outputs,
        sums,
        scale,
        *strides,
        *constants,
    )
    if num_splits == 1:
        return outputs[:, :, 0].to(q.dtype)
    out = torch.empty_like(q, dtype=torch.float32)  # [S, Hq, D]
    room = triton.next_power_of_2(num_splits)
    parts.reduce_kernel[(num_seqs * num_heads,)](outputs, sums, out, num_splits, head_dim, room)
    return out.to(q.dtype)


def kernel(parts: ModuleType, cases: list) -> list:
    """cases: dicts for `_error`; gives the largest difference from float64, NaN where the output has one."""
    return [_error(parts, **case) for case in cases]


def _error(
    parts,
    lengths,
    block_size,
    num_splits=1,
    poison=None,
    apart=None,
    kv_heads=1,
    group=2,
    told_block_size=None,
) -> float:
    """Decode sequences of these lengths and compare.

    poison: what lies in unused slots. apart: numbers from block to block, in memory that is only reserved.
    """
    generator = torch.Generator().manual_seed(0)
    tables, used = [], 0
    needed = [-(-length // block_size) for length in lengths]
    order = torch.randperm(sum(needed) or 1, generator=generator)
    k, v = torch.randn(2, sum(needed) or 1, block_size, kv_heads, 16, generator=generator)  # [N, B, Hkv, D]
    q = torch.randn(len(lengths), kv_heads * group, 16, generator=generator) * 2  # [S, Hq, D]
    width, expected = max([*needed, 1]), []
    for row, (length, blocks) in enumerate(zip(lengths, needed, strict=True)):
        ids = order[used : used + blocks]
        used += blocks
        tables.append([*ids.tolist(), *[-1] * (width - blocks)])
        flat_k, flat_v = k[ids].flatten(0, 1), v[ids].flatten(0, 1)  # [blocks * B, Hkv, D]
        expected.append(attention_oracle(q[row], flat_k[:length], flat_v[:length]))
        if poison is not None and blocks and length % block_size:
            k[ids[-1], length % block_size :] = v[ids[-1], length % block_size :] = poison
    if apart:
        k, v = _far_apart(k, apart), _far_apart(v, apart)
    out = decode(
        parts, q, k, v,
        torch.tensor(tables, dtype=torch.int32), torch.tensor(lengths, dtype=torch.int32),
        scale=16**-0.5, num_splits=num_splits, block_size=told_block_size,
    )  # fmt: skip
    return float((out.double() - torch.stack(expected)).abs().max())


def _far_apart(cache: torch.Tensor, stride: int) -> torch.Tensor:
    """The same blocks, `stride` numbers apart: address space that takes memory only where it is written."""
    import numpy as np

    no_reserve = getattr(mmap, "MAP_NORESERVE", 0x4000)  # named since Python 3.13
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve
    room = mmap.mmap(-1, (len(cache) * stride + cache[0].numel()) * 4, flags=flags)
    storage = torch.from_numpy(np.frombuffer(room, dtype=np.int32)).view(torch.float32)
    return storage.as_strided(cache.shape, (stride, *cache.stride()[1:])).copy_(cache)


def tokens(parts: ModuleType, count: int, real_model: bool) -> list:
    """The same prompt decoded through this kernel and through the reference: [tokens, text] of each."""
    from kvlab import BlockManager, Decoder, PagedSequences, find_model, generate
    from kvlab.backends import BACKENDS, Backend
    from kvlab.exercises.n13_serve_a_model.lesson import StandIn

    def through_the_parts(q, k_cache, v_cache, tables, lens, *, scale, **_):
        return decode(parts, q, k_cache, v_cache, tables, lens, scale=scale)

    BACKENDS["yours"] = Backend(through_the_parts, lambda *_: False)
    model = find_model() if real_model else None
    decoder = Decoder.from_gguf(model) if model else StandIn()
    prompt = decoder.tokenizer.chat("What is the capital of France?")
    found = []
    for backend in ("yours", "reference"):
        sequences = PagedSequences(decoder.config, BlockManager(16, 16), backend=backend)
        stream = generate(decoder, sequences, {"A": prompt}, max_new_tokens=count)
        ids = [token.token_id for token in stream]
        found.append([ids, decoder.tokenizer.decode(ids)])
    return found
