"""Small Triton kernels whose results are known.

`python -m kvlab.interpreter_probes` prints, as JSON, which of them come out right here;
`kvlab.interpreter_check` runs it with TRITON_INTERPRET=1 and explains what it finds.
"""

from __future__ import annotations

import json
import math

import torch
import triton
import triton.language as tl


@triton.jit
def _loop(out, begin, end):
    total = 0
    for i in range(begin, end, 2):
        total += i
    tl.store(out, total)


@triton.jit
def _product(a, b, out, COMPUTE: tl.constexpr):
    rows, columns = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    x, y = tl.load(a + rows * 16 + columns).to(COMPUTE), tl.load(b + rows * 16 + columns).to(COMPUTE)
    tl.store(out + rows * 16 + columns, tl.dot(x, y, input_precision="ieee").to(tl.float32))


@triton.jit
def _masked(numbers, out, count):
    lanes = tl.arange(0, 8)
    tl.store(out + lanes, tl.load(numbers + lanes, mask=lanes < count, other=7.0), mask=lanes < 6)


@triton.jit
def _weights(scores, out):
    lanes = tl.arange(0, 4)
    score = tl.load(scores + lanes)
    tl.store(out + lanes, tl.exp2(score - tl.max(score, 0)))


@triton.jit
def _far(pointer, out, block, stride):
    tl.store(out, block.to(tl.int64) * stride)


def loop() -> bool:
    out = torch.zeros(1, dtype=torch.int32)
    _loop[(1,)](out, 3, 10)
    return out.item() == 3 + 5 + 7 + 9


def product(dtype: torch.dtype, compute: tl.dtype) -> bool:
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(16, 16, generator=generator).to(dtype) for _ in "ab")
    out = torch.zeros(16, 16)
    _product[(1,)](a, b, out, compute)
    return bool((out.double() - a.double() @ b.double()).abs().max() < 0.1)


def masked() -> bool:
    numbers, out = torch.full((8,), math.nan), torch.zeros(8)
    numbers[:5] = torch.arange(5.0)
    _masked[(1,)](numbers, out, 5)
    return out.tolist() == [0, 1, 2, 3, 4, 7, 0, 0]


def weights() -> bool:
    out = torch.zeros(4)
    _weights[(1,)](torch.tensor([1.0, -math.inf, 0.0, 1.0]), out)
    return out.tolist() == [1, 0, 0.5, 1]


def far() -> bool:
    out = torch.zeros(1, dtype=torch.int64)
    _far[(1,)](out, out, 70_000, 65_536)
    return out.item() == 70_000 * 65_536


PROBES = {
    "loop": loop,
    "masked": masked,
    "weights": weights,
    "far": far,
    "float32": lambda: product(torch.float32, tl.float32),
    "float16": lambda: product(torch.float16, tl.float32),
    "bfloat16": lambda: product(torch.bfloat16, tl.float32),
    "float8": lambda: product(torch.float8_e4m3fn, tl.float32),
    "bfloat16 itself": lambda: product(torch.bfloat16, tl.bfloat16),
}


def probe(name: str) -> str:
    """ "" when the result is right, else what happened."""
    try:
        return "" if PROBES[name]() else "a wrong number, without an error"
    except Exception as error:  # whatever a broken pair of versions raises is the finding
        return f"{type(error).__name__}: {str(error).strip().splitlines()[-1] if str(error) else ''}"


if __name__ == "__main__":
    print(json.dumps({name: probe(name) for name in PROBES}))
