"""Who can run `paged_decode`, best first. A backend's module is imported when it is used, not before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple

import torch

from kvlab.paged_reference import reference_decode


class Backend(NamedTuple):
    """decode: `paged_decode` without its checks. suits(q, k_cache, v_cache): whether "auto" may take it."""

    decode: Callable[..., torch.Tensor]
    suits: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], bool]


def _triton(*tensors: torch.Tensor, **options) -> torch.Tensor:
    try:
        from kvlab.triton_decode import triton_decode
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        raise ValueError("backend 'triton' needs Triton, which exists for Linux only.") from error
    q = tensors[0]
    # Triton launches on the current GPU, which need not be the one that holds the tensors.
    with torch.cuda.device(q.device) if q.is_cuda else nullcontext():
        return triton_decode(*tensors, **options)


def _triton_suits(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor) -> bool:
    if not q.is_cuda:
        return False  # the interpreter is right but far slower than the reference
    try:
        from kvlab.triton_setup import check_launch

        check_launch(q, k_cache, None, interpreted=False)
        import kvlab.triton_decode  # noqa: F401
    except (ValueError, RuntimeError, ImportError):
        return False
    return True


def _cpu(*tensors: torch.Tensor, **options) -> torch.Tensor:
    from kvlab.cpu_decode import cpu_decode

    return cpu_decode(*tensors, **options)


def _cpu_suits(q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor) -> bool:
    from kvlab.cpu_decode import why_not

    return why_not(q, k_cache, v_cache) is None


BACKENDS = {
    "triton": Backend(_triton, _triton_suits),
    "cpu": Backend(_cpu, _cpu_suits),
    "reference": Backend(reference_decode, lambda *_: True),
}
