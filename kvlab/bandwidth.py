"""The limits of this machine, measured beside what they limit: reading, copying, and arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import torch

from kvlab.roofline import Roofline
from kvlab.timing import last_level_cache, measure

READ, COPY = "read", "copy"
MATRIX = 1024  # rows and columns of the product that measures arithmetic; 4 MiB a matrix in float32


def limits(take: Callable[[], torch.Tensor]) -> dict[str, Callable[[], object]]:
    """Contenders that read and that copy the bytes of the tensor that `take()` gives, another at each call.

    The read adds the bytes up as 64-bit numbers, with torch. The copy writes them to a buffer of its own: it
    moves each byte twice.
    """
    target = torch.empty_like(take())
    return {READ: lambda: take().view(-1).view(torch.int64).sum(), COPY: lambda: target.copy_(take())}


def measured_roofline(
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    *,
    rounds: int = 7,
    clock: str = "wall",
) -> Roofline:
    """This machine as a roofline: the bandwidth of a plain read, and the speed of a matrix product."""
    size = 4 * last_level_cache(device)
    row = torch.zeros(size // 8, dtype=torch.int64, device=device)
    a, b = torch.randn(2, MATRIX, MATRIX, device=device).to(dtype)
    contenders = {READ: lambda: row.sum(), "multiply": lambda: a @ b}
    times = measure(contenders, rounds=rounds, device=device, clock=clock)
    return Roofline(size / times[READ].median, 2 * MATRIX**3 / times["multiply"].median)
