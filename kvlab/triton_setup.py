"""How to launch the Triton kernel here: what it can run, said before a launch, and the sizes of its tiles."""

from __future__ import annotations

import torch

MAX_HEAD_DIM = 256
MAX_GRID = 65535  # CUDA's limit for the second and third dimension of a grid
FP8_SINCE = (8, 9)  # the compute capability from which float8_e4m3fn is converted in hardware

# The choices that are worth trying: (positions in a tile, warps, pipeline stages).
CONFIGS = ((128, 4, 2), (64, 4, 3), (64, 8, 3), (32, 4, 3), (32, 8, 3), (16, 8, 3))


def check_launch(q: torch.Tensor, k_cache: torch.Tensor, num_splits: int | None, interpreted: bool) -> None:
    """ValueError for what does not fit the kernel, RuntimeError for what does not fit this machine."""
    if q.dtype == torch.float64:
        raise ValueError(
            "the Triton kernel takes q as float32, bfloat16 or float16; use backend='reference'."
        )
    if q.shape[2] > MAX_HEAD_DIM:
        raise ValueError(
            f"the Triton kernel takes a head_dim up to {MAX_HEAD_DIM}, got {q.shape[2]}: one program holds a "
            "whole head; use backend='reference'."
        )
    if max(q.shape[0], num_splits or 1) > MAX_GRID:
        raise ValueError(
            f"one launch takes up to {MAX_GRID} sequences and splits, got {q.shape[0]} and {num_splits}."
        )
    if interpreted:
        return
    if not q.is_cuda:
        raise RuntimeError(
            "backend 'triton' needs a GPU, or the interpreter: set TRITON_INTERPRET=1 in the environment "
            "before Python starts; backend='auto' picks what runs here."
        )
    if torch.version.hip is None:
        check_fp8(k_cache.dtype, torch.cuda.get_device_capability(q.device))


def check_fp8(kv_dtype: torch.dtype, capability: tuple[int, int]) -> None:
    """RuntimeError when an NVIDIA GPU of this compute capability cannot read a float8_e4m3fn cache."""
    if kv_dtype == torch.float8_e4m3fn and capability < FP8_SINCE:
        have, need = (".".join(map(str, version)) for version in (capability, FP8_SINCE))
        raise RuntimeError(
            f"a float8_e4m3fn cache needs an NVIDIA GPU of compute capability {need} or newer (Ada, Hopper), "
            f"this one has {have}: keep K and V in bfloat16 or float16 here."
        )


def default_config(head_dim: int, rows: int, compute_bytes: int) -> tuple[int, int, int]:
    """One of `CONFIGS`: K and V of a tile take 32 KiB of shared memory at most, a stage.

    rows: query heads that one program computes. compute_bytes: of a number in the products, 2 or 4; float32
    products run without matrix instructions, and they and many rows need twice the threads for their sums.
    """
    row_bytes = max(64, 1 << (head_dim - 1).bit_length()) * compute_bytes
    num_warps = 8 if rows > 16 or compute_bytes == 4 or row_bytes > 256 else 4
    return min(64, 16384 // row_bytes), num_warps, 3


def processors(device: torch.device) -> int:
    """Multiprocessors of the GPU; 1 for the interpreter, which runs programs one after another."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1
