"""The ways to attend in a decode step, on the same numbers, as functions to be timed side by side."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import NamedTuple

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

from kvlab.attention import paged_decode
from kvlab.bandwidth import COPY, READ, limits
from kvlab.timing import copies_needed, last_level_cache
from kvlab.traffic import ELEMENT_BYTES, DecodeShape

CONTIGUOUS, GATHER, GROW, FLEX = (
    "contiguous SDPA",
    "gather, then SDPA",
    "torch.cat, then SDPA",
    "FlexAttention",
)
PAGED = "paged, "  # and the backend's name
LIMITS = (READ, COPY)
TOLERANCE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 4e-2, "float8_e4m3fn": 4e-2}


class Field(NamedTuple):
    """What can be timed for a shape. `runs`: name -> function; `left_out`: name -> why not."""

    shape: DecodeShape
    runs: dict[str, Callable[[], torch.Tensor]]
    left_out: dict[str, str]


class Buffers:
    """q, K and V of a shape, in blocks and contiguous, as many copies as keep them out of the cache.

    Attributes:
        q: [S, Hq, D].  tables: int32 [S, max_blocks], a random permutation of all blocks.  lens: int32 [S].
        num_copies: of the K and V; every use takes the next one, whoever used the one before.
    """

    def __init__(self, shape: DecodeShape, device: torch.device | str = "cpu", seed: int = 0):
        self.shape, self.dtype = shape.check(), getattr(torch, shape.dtype)
        generator = torch.Generator(device).manual_seed(seed)
        num_blocks = shape.num_seqs * shape.blocks_per_seq
        size = (2, num_blocks, shape.block_size, shape.num_kv_heads, shape.head_dim)
        blocks = torch.empty(size, device=device).normal_(generator=generator)  # [2, N, B, Hkv, D]
        q_dtype = self.dtype if ELEMENT_BYTES[shape.dtype] > 1 else torch.bfloat16
        q_size = (shape.num_seqs, shape.num_q_heads, shape.head_dim)
        self.q = torch.empty(q_size, device=device).normal_(generator=generator).to(q_dtype)
        order = torch.randperm(num_blocks, generator=generator, device=device)
        self.tables = order.to(torch.int32).view(shape.num_seqs, -1)
        self.lens = torch.full((shape.num_seqs,), shape.context, dtype=torch.int32, device=device)
        self.num_copies = copies = copies_needed(shape.kv_bytes, last_level_cache(device))
        blocks = blocks.to(self.dtype)
        self._paged = cycle([blocks, *(blocks.clone() for _ in range(copies - 1))])
        whole = self.gathered().contiguous()  # [2, S, Hkv, T, D]
        self._whole = cycle([whole, *(whole.clone() for _ in range(copies - 1))])

    @property
    def folded(self) -> torch.Tensor:
        """q with the group of each KV head side by side: [S, Hkv, G, D]."""
        return self.q.view(self.shape.num_seqs, self.shape.num_kv_heads, -1, self.shape.head_dim)

    def paged(self) -> torch.Tensor:
        """The next copy of K and V in blocks: [2, N, B, Hkv, D]."""
        return next(self._paged)

    def whole(self) -> torch.Tensor:
        """The next copy of K and V in logical order: [2, S, Hkv, T, D]."""
        return next(self._whole)

    def gathered(self) -> torch.Tensor:
        """K and V in logical order, copied out of the blocks: [2, S, Hkv, T, D]."""
        blocks = self.paged().view(_bits(self.dtype))
        slots = blocks[:, self.tables]  # [2, S, max_blocks, B, Hkv, D]
        tokens = slots.flatten(2, 3)[:, :, : self.shape.context]  # [2, S, T, Hkv, D]
        return tokens.transpose(2, 3).view(self.dtype)


def line_up(
    buffers: Buffers,
    *,
    num_splits: int | None = None,
    backends: tuple[str, ...] | None = None,
    config: tuple[int, int, int] | None = None,
) -> Field:
    """All contenders for these buffers, with a reason for each that cannot run.

    backends: of `paged_decode`; by default the one that it picks itself. config: time the Triton kernel with
    these (tile, warps, stages) instead.
    """
    shape, q = buffers.shape, buffers.q
    runs: dict[str, Callable[[], torch.Tensor]] = {}
    left_out: dict[str, str] = {}
    if ELEMENT_BYTES[shape.dtype] == 1:
        why = "torch's scaled_dot_product_attention takes no float8"
        left_out = dict.fromkeys((CONTIGUOUS, GATHER, GROW), why)
    else:
        runs |= _through_sdpa(buffers)
    if config is not None:
        runs[PAGED + "triton"] = _with_config(buffers, num_splits, config)
        backends = ()
    for name in (picked(buffers),) if backends is None else backends:

        def paged(name: str = name) -> torch.Tensor:
            k, v = buffers.paged()  # [N, B, Hkv, D] each
            return paged_decode(
                q, k, v, buffers.tables, buffers.lens, backend=name, num_splits=num_splits, debug=False
            )

        runs[PAGED + name] = paged
    return Field(shape, limits(buffers.whole) | runs, left_out)


def _with_config(buffers: Buffers, num_splits: int | None, config: tuple[int, int, int]) -> Callable:
    from kvlab.triton_decode import triton_decode

    options = {"scale": buffers.shape.head_dim**-0.5, "k_scale": 1.0, "v_scale": 1.0, "window": None}

    def paged() -> torch.Tensor:
        tensors = (buffers.q, *buffers.paged(), buffers.tables, buffers.lens)
        return triton_decode(*tensors, num_splits=num_splits, config=config, **options)

    return paged


def picked(buffers: Buffers) -> str:
    """The backend that "auto" takes for these tensors."""
    from kvlab.backends import BACKENDS

    tensors = buffers.q, *buffers.paged()
    return next(name for name, backend in BACKENDS.items() if backend.suits(*tensors))


def agree(field: Field) -> None:
    """All contenders must compute the same before their times mean anything.

    Raises:
        AssertionError: naming the one that differs.
    """
    runs = {name: run for name, run in field.runs.items() if name not in LIMITS}
    first, *others = runs
    expected = runs[first]().double()
    for name in others:
        error = (runs[name]().double() - expected).abs().max().item()
        assert error <= TOLERANCE[field.shape.dtype], f"{name} differs from {first} by {error:.1e}"


def _through_sdpa(buffers: Buffers) -> dict[str, Callable[[], torch.Tensor]]:
    q, folded = buffers.q, buffers.folded

    def contiguous() -> torch.Tensor:
        return sdpa(folded, *buffers.whole()).reshape(q.shape)

    def gather() -> torch.Tensor:
        return sdpa(folded, *buffers.gathered()).reshape(q.shape)

    def grow() -> torch.Tensor:
        kv = buffers.whole()  # [2, S, Hkv, T, D]
        old, new = kv[:, :, :, :-1], kv[:, :, :, -1:]
        grown = (torch.cat([old[i], new[i]], dim=2) for i in range(2))  # [S, Hkv, T, D] each
        return sdpa(folded, *grown).reshape(q.shape)

    return {CONTIGUOUS: contiguous, GATHER: gather, GROW: grow}


def _bits(dtype: torch.dtype) -> torch.dtype:
    # Indexing float8 is not there on every device; its bytes are.
    return torch.uint8 if dtype == torch.float8_e4m3fn else dtype
