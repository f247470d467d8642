"""The fast CPU path: the walks of all sequences, cut into parts, over a few threads.

The walk itself is in cpu_kernel.py. It is compiled on its first use in an environment (some seconds for a
KV dtype, once) and loaded from numba's cache after that (about a second a process).
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch

LOG2_E = 1.4426950408889634  # exp(x) = exp2(x * LOG2_E)
MULTIPLE = 16  # of head_dim: what the walk's inner loops take at a time
SHORTEST = 256  # positions: a shorter part is not worth a merge
PARTS_PER_THREAD = 4  # so that a thread that was held up does not hold up the others
STORED_AS = {torch.float32: torch.float32, torch.bfloat16: torch.uint16, torch.float16: torch.int16}


class Part(NamedTuple):
    """Positions begin .. end - 1 of one sequence."""

    seq: int
    begin: int
    end: int


def why_not(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor) -> str | None:
    """What keeps the CPU path from these tensors, as the end of a sentence; None when nothing does."""
    if not _has_numba():
        return "it needs numba, which is not installed"
    if q.device.type != "cpu":
        return f"the tensors are on {q.device}"
    if q.dtype == torch.float64:
        return "it computes in float32, and q is float64"
    if k_cache.dtype not in STORED_AS:
        return f"it reads float32, bfloat16 and float16 caches, not {k_cache.dtype}"
    if k_cache.dtype == torch.float16 and not _converts_float16():
        return "this processor has no instruction that widens float16"
    if q.shape[2] % MULTIPLE:
        return f"head_dim must be a multiple of {MULTIPLE}, not {q.shape[2]}"
    if k_cache.stride(3) != 1 or v_cache.stride(3) != 1:
        return "the numbers of one head must lie next to each other in the cache (stride 1)"
    return None


def cpu_decode(
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
    """`kvlab.paged_decode` without its checks; computes in float32 on `torch.get_num_threads()` threads."""
    reason = why_not(q, k_cache, v_cache)
    if reason is not None:
        raise ValueError(f"the CPU path cannot run this: {reason}; backend='auto' picks one that can.")
    parts = cut(context_lens.tolist(), window, num_splits, torch.get_num_threads())
    if not parts:
        return torch.zeros(q.shape, dtype=q.dtype)
    num_seqs, num_heads, head_dim = q.shape
    in_pairs = k_cache.dtype == torch.bfloat16
    scaled = converted(q, torch.float32).numpy() * np.float32(scale * k_scale * LOG2_E)  # [S, Hq, D]
    # Each part's sum of weight * v. By torch, which aligns it to cache lines.
    acc = torch.empty(len(parts), num_heads, head_dim).numpy()
    tops, sums = np.empty((2, len(parts), num_heads), np.float32)
    run_all(
        _walk_all(),
        parts,
        (apart(scaled) if in_pairs else scaled).reshape(num_seqs, -1),
        flat(k_cache),
        flat(v_cache),
        (*k_cache.stride()[:3], *v_cache.stride()[:3]),
        block_tables.to(torch.int32).contiguous().numpy(),
        k_cache.shape[1],
        (k_cache.shape[2], num_heads // k_cache.shape[2], head_dim),
        acc.reshape(len(parts), -1),
        tops,
        sums,
    )
    merged = merge(parts, acc, tops, sums / np.float32(v_scale))
    out = np.zeros(q.shape, np.float32)
    out[sorted({part.seq for part in parts})] = together(merged) if in_pairs else merged
    return converted(torch.from_numpy(out), q.dtype)


def converted(rows: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """rows [S, ..] in dtype, one by one: more at once wakes torch's threads, which then spin on our cores."""
    out = torch.empty(rows.shape, dtype=dtype)
    for own, row in zip(out, rows, strict=True):
        own.copy_(row)
    return out


def apart(numbers: np.ndarray) -> np.ndarray:
    """[.., D] with the even places of every 16 before the odd ones: as the walk widens bfloat16."""
    pairs = numbers.reshape(-1, MULTIPLE // 2, 2)
    return np.stack([pairs[:, :, 0], pairs[:, :, 1]], axis=1).reshape(numbers.shape)


def together(numbers: np.ndarray) -> np.ndarray:
    """What `apart` took apart, in its own order again."""
    halves = numbers.reshape(-1, 2, MULTIPLE // 2)
    return np.stack([halves[:, 0], halves[:, 1]], axis=2).reshape(numbers.shape)


def cut(lens: list[int], window: int | None, num_splits: int | None, threads: int) -> list[Part]:
    """The parts of all walks, in order; a sequence without positions has none.

    num_splits: parts of each sequence. None: as many as give every thread PARTS_PER_THREAD parts of about the
    same length, none below SHORTEST positions for that.
    """
    starts = [max(0, length - window) if window else 0 for length in lens]
    total = sum(lens) - sum(starts)
    most = max(SHORTEST, -(-total // (PARTS_PER_THREAD * threads)))
    parts = []
    for seq, (start, end) in enumerate(zip(starts, lens, strict=True)):
        count = min(num_splits or -(-(end - start) // most), end - start)
        edges = [start + (end - start) * i // count for i in range(count + 1)] if count else []
        parts += [Part(seq, *ends) for ends in pairwise(edges)]
    return parts


def merge(parts: list[Part], acc: np.ndarray, tops: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """The output [sequences with positions, Hq, D] from each part's acc [Hq, D], tops and sums [Hq]."""
    seqs = np.array([part.seq for part in parts])
    firsts = np.flatnonzero(np.diff(seqs, prepend=-1))
    if len(firsts) == len(parts):
        return acc / sums[:, :, None]
    counts = np.diff(firsts, append=len(parts))
    top = np.repeat(np.maximum.reduceat(tops, firsts), counts, axis=0)  # [parts, Hq]
    weights = np.exp2(tops - top)
    total = np.add.reduceat(weights * sums, firsts)  # [sequences, Hq]
    return np.add.reduceat(weights[:, :, None] * acc, firsts) / total[:, :, None]


def flat(cache: torch.Tensor) -> np.ndarray:
    """The storage that a cache [N, B, Hkv, D] spans, as one row that shares its memory: uint16 for bfloat16,
    int16 for float16, since NumPy has no bfloat16 and numba no float16."""
    length = 1 + sum((size - 1) * stride for size, stride in zip(cache.shape, cache.stride(), strict=True))
    row = cache.detach().as_strided((length,), (1,))
    return row.view(STORED_AS[cache.dtype]).numpy()


def run_all(run: Callable[..., None], parts: list[Part], *args: object) -> None:
    """run(counter, parts, *args) on `torch.get_num_threads()` threads, this one among them.

    run takes parts by their number, as `cpu_kernel.take` hands them out, until none is left.
    """
    counter, rows = np.zeros(1, np.int64), np.array(parts)
    others = min(torch.get_num_threads(), len(parts)) - 1
    pool = _pool(others, os.getpid()) if others else None
    running = [pool.submit(run, counter, rows, *args) for _ in range(others)]
    run(counter, rows, *args)
    for thread in running:
        thread.result()


@cache
def _walk_all():
    from kvlab.cpu_kernel import walk_all

    return walk_all


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Threads of this process: those of the one that it was forked from are not there."""
    return ThreadPoolExecutor(threads, thread_name_prefix="kvlab-decode")


@cache
def _has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None


@cache
def _converts_float16() -> bool:
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    return features.get(
        "f16c", "arm" in binding.get_process_triple() or "aarch64" in binding.get_process_triple()
    )
