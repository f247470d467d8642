"""Tensors to try an answer on, and a comparison that allows for rounding. torch is imported when used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvlab.exercises.exercise import Refused
from kvlab.exercises.trial import show

if TYPE_CHECKING:
    import torch

TOLERANCE = 1e-4  # relative to the largest number; float32 sums in another order differ by about 1e-6


def random(*size: int, seed: int, factor: float = 1.0) -> torch.Tensor:
    """Normal numbers in float32, the same ones in every run."""
    import torch

    return torch.randn(*size, generator=torch.Generator().manual_seed(seed)) * factor


def exact(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention of one query [D] over k, v [T, D] in float64: [D]."""
    from kvlab.attention import attention_oracle

    return attention_oracle(q[None], k[:, None], v[:, None])[0]


def expect_close(got: Any, expected: torch.Tensor, *, given: str, because: str, what: str = "") -> None:
    """Refused unless `got` has the shape of `expected` and, up to rounding, its numbers; NaN equals NaN."""
    import torch

    what = f"{what} " if what else ""
    if got is None or got is Ellipsis:
        raise Refused(f"{given}: expected {what}{told(expected)}; got {got!r} (is the `return` missing?).")
    try:
        numbers = torch.as_tensor(got).double()
    except (TypeError, ValueError, RuntimeError):
        raise Refused(f"{given}: expected {what}{told(expected)}; got {show(got)}, not a tensor.") from None
    if numbers.shape != expected.shape:
        raise Refused(
            f"{given}: expected {what or 'a result '}of shape {list(expected.shape)}, because {because}; "
            f"got shape {list(numbers.shape)}."
        )
    finite = expected[expected.isfinite()].abs()
    allowed = TOLERANCE * max(1.0, finite.max().item() if finite.numel() else 0.0)
    right = torch.isclose(numbers, expected.double(), rtol=0, atol=allowed, equal_nan=True)
    if not right.all():
        if expected.ndim > 1:  # the first row that is wrong says more than the beginning
            row = int(torch.nonzero(~right)[0, 0])
            what, expected, numbers = f"{what}row {row} to be ", expected[row], numbers[row]
        raise Refused(f"{given}: expected {what}{told(expected)}, because {because}; got {told(numbers)}.")


def told(tensor: Any) -> str:
    """Numbers in three figures; of a large tensor the first few."""
    flat = tensor.flatten().tolist()
    text = ", ".join(f"{number:.3g}" for number in flat[:6]) + (", ..." if len(flat) > 6 else "")
    return text if tensor.ndim == 0 else f"[{text}]"
