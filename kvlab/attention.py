"""Decode attention through block tables: the oracle that says what is right, and the door to the backends."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from kvlab.backends import BACKENDS
from kvlab.kv_checks import KV_DTYPES
from kvlab.online_softmax import TraceStep, online_softmax_trace
from kvlab.paged_reference import blocks_used

__all__ = ["TraceStep", "attention_oracle", "online_softmax_trace", "paged_decode"]

Q_DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def attention_oracle(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    scale: float | None = None,
    window: int | None = None,
) -> torch.Tensor:
    """What decode attention has to give for one sequence, the plain way: softmax(scale * q k^T) v in float64.

    Args:
        q: [Hq, D], the query of the last token. k, v: [T, Hkv, D], the sequence in logical order.
            Query heads h * (Hq / Hkv) .. share KV head h.
        scale: factor on q k^T, 1 / sqrt(D) when None. window: only the last `window` positions count.

    Returns:
        float64 [Hq, D]; zeros when T is 0.
    """
    q, k, v = q.double(), k.double(), v.double()
    first = 0 if window is None else max(0, len(k) - window)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    group = q.shape[0] // k.shape[1]
    output = torch.zeros_like(q)  # [Hq, D]
    for head in range(q.shape[0] if len(k) else 0):
        keys, values = k[first:, head // group], v[first:, head // group]  # [T, D]
        output[head] = torch.softmax(scale * (keys @ q[head]), dim=0) @ values
    return output


def paged_decode(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_tables: torch.Tensor,
    context_lens: torch.Tensor,
    *,
    scale: float | None = None,
    window: int | None = None,
    k_scale: float = 1.0,
    v_scale: float = 1.0,
    num_splits: int | None = None,
    backend: str = "auto",
    debug: bool | None = None,
) -> torch.Tensor:
    """Attention of one new token a sequence over that sequence's KV, read through its block table.

    Args:
        q: [S, Hq, D], float32, bfloat16, float16 or float64.
        k_cache, v_cache: [num_blocks, block_size, Hkv, D], one layer of a `PagedKVCache`. Hq is a multiple of
            Hkv; query heads h * (Hq / Hkv) .. share KV head h.
        block_tables: int32 [S, max_blocks], physical block ids in logical order. Entries past a row's
            context, or wholly before its window, are never followed: -1 or anything else may stand there.
        context_lens: int32 [S], tokens that each sequence has in the cache, the new one included. A context
            of 0 gives zeros. What lies in slots past the context, NaN too, does not reach the output.
        scale: factor on q k^T, 1 / sqrt(D) when None.
        window: each sequence attends to its last `window` tokens only.
        k_scale, v_scale: what stored K and V stand for is the stored number times this (float8 caches).
        num_splits: cut each walk into so many parts and merge them, as a split-KV kernel does; the result is
            the same up to rounding. None: the backend chooses.
        backend: "auto" (Triton on a GPU, else the CPU path where it fits, else the reference) or one of
            `BACKENDS`.
        debug: check every length and block id. None: on a CPU, and on a GPU when KVLAB_DEBUG is set: there
            the check waits for the device. Without it, a wrong id reads memory that is not the sequence's.

    Tables and lengths may be NumPy arrays, such as `BlockManager.block_table_array` gives.

    Returns:
        [S, Hq, D], of q's dtype.

    Raises:
        ValueError: shapes, dtypes or devices that do not fit together; an unknown backend.
        IndexError: a context longer than its table row, or a block id outside the cache.
    """
    block_tables, context_lens = _as_tensor(block_tables, q), _as_tensor(context_lens, q)
    _check_shapes(q, k_cache, v_cache, block_tables, context_lens)
    _check_kinds(q, k_cache, v_cache, block_tables, context_lens)
    _check_options(window, num_splits)
    if q.device.type == "cpu" or (os.environ.get("KVLAB_DEBUG", "0") != "0" if debug is None else debug):
        _check_tables(block_tables, context_lens, k_cache, window)
    return _backend(backend, q, k_cache, v_cache)(
        q,
        k_cache,
        v_cache,
        block_tables,
        context_lens,
        scale=q.shape[-1] ** -0.5 if scale is None else scale,
        window=window,
        k_scale=k_scale,
        v_scale=v_scale,
        num_splits=num_splits,
    )


def _backend(name: str, *tensors: torch.Tensor) -> Callable[..., torch.Tensor]:
    if name == "auto":
        return next(backend.decode for backend in BACKENDS.values() if backend.suits(*tensors))
    if name not in BACKENDS:
        raise ValueError(f"there is no backend {name!r} here; there are: auto, {', '.join(BACKENDS)}.")
    return BACKENDS[name].decode


def _as_tensor(numbers: Any, q: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(numbers, device=q.device) if isinstance(numbers, np.ndarray) else numbers


def _check_shapes(q, k_cache, v_cache, block_tables, context_lens) -> None:
    ranks = {"q": 3, "k_cache": 4, "v_cache": 4, "block_tables": 2, "context_lens": 1}
    for (name, rank), tensor in zip(
        ranks.items(), (q, k_cache, v_cache, block_tables, context_lens), strict=True
    ):
        if tensor.ndim != rank:
            raise ValueError(f"{name} must have {rank} dimensions, got shape {list(tensor.shape)}.")
    if k_cache.shape != v_cache.shape:
        raise ValueError(
            f"k_cache {list(k_cache.shape)} and v_cache {list(v_cache.shape)} must have one shape."
        )
    if q.shape[2] != k_cache.shape[3]:
        raise ValueError(f"head_dim differs: q {list(q.shape)}, k_cache {list(k_cache.shape)}.")
    if k_cache.shape[2] == 0 or q.shape[1] % k_cache.shape[2]:
        raise ValueError(
            f"{q.shape[1]} query heads cannot share {k_cache.shape[2]} KV heads: the number of query heads "
            "must be a multiple of the number of KV heads."
        )
    if not q.shape[0] == block_tables.shape[0] == context_lens.shape[0]:
        raise ValueError(
            f"one row a sequence: q {list(q.shape)}, block_tables {list(block_tables.shape)}, context_lens "
            f"{list(context_lens.shape)} must start with the same number."
        )


def _check_kinds(q, k_cache, v_cache, block_tables, context_lens) -> None:
    if q.dtype not in Q_DTYPES:
        raise ValueError(f"q can be {', '.join(map(str, Q_DTYPES))}, not {q.dtype}.")
    if k_cache.dtype != v_cache.dtype or k_cache.dtype not in KV_DTYPES:
        raise ValueError(
            f"k_cache {k_cache.dtype} and v_cache {v_cache.dtype} must have one dtype, one of "
            f"{', '.join(map(str, KV_DTYPES))}."
        )
    for name, tensor in (("block_tables", block_tables), ("context_lens", context_lens)):
        if tensor.dtype not in (torch.int32, torch.int64):
            raise ValueError(f"{name} must be int32, got {tensor.dtype}.")
    devices = {str(t.device) for t in (q, k_cache, v_cache, block_tables, context_lens)}
    if len(devices) > 1:
        raise ValueError(f"all tensors must be on one device, got {', '.join(sorted(devices))}.")


def _check_options(window: int | None, num_splits: int | None) -> None:
    if window is not None and window < 1:
        raise ValueError(f"window must be at least 1 token, or None for all, got {window}.")
    if num_splits is not None and num_splits < 1:
        raise ValueError(f"num_splits must be at least 1, or None, got {num_splits}.")


def _check_tables(
    block_tables: torch.Tensor, context_lens: torch.Tensor, k_cache: torch.Tensor, window: int | None
) -> None:
    num_blocks, block_size = k_cache.shape[:2]
    tables, lens = block_tables.cpu().numpy(), context_lens.cpu().numpy()
    width = tables.shape[1]
    outside = (lens < 0) | (lens > width * block_size)
    if outside.any():
        row = np.flatnonzero(outside)[0]
        raise IndexError(
            f"sequence {row}: context length {lens[row]} is outside its table row: {width} blocks of "
            f"{block_size} hold 0 to {width * block_size} tokens."
        )
    used = blocks_used(width, block_size, lens, window)  # [S, max_blocks]
    wrong = used & ((tables < 0) | (tables >= num_blocks))
    if wrong.any():
        row, entry = np.argwhere(wrong)[0]
        raise IndexError(
            f"sequence {row}: block_tables[{row}, {entry}] is {tables[row, entry]}, but its context of "
            f"{lens[row]} tokens needs a block there, 0 to {num_blocks - 1}."
        )
