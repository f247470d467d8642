"""Compile the decode kernel for a GPU that is not here, and count what its machine code consists of.

Triton asks its driver which GPU there is; a stand-in that names another one is all that compiling needs.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from functools import cache

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime import driver

from kvlab.compile_report import TARGETS, Compiled, Variant
from kvlab.triton_decode import INTERPRETED, decode_kernel, decode_launch
from kvlab.triton_setup import check_fp8

NUM_SEQS, NUM_KV_HEADS, NUM_BLOCKS = 64, 8, 1024  # sizes do not enter the code, whether 16 divides them does
WIDE_NVIDIA = r"\bLDGSTS\.E\.(?:BYPASS\.)?(?:LTC128B\.)?128\b"
WIDE_AMD = r"\b(?:global|buffer|flat)_load_dwordx4\b"


class StandIn(DriverBase):
    """A driver for a GPU that is not here: it names its target, and can launch nothing."""

    def __init__(self, name: str):
        self.index = TARGETS.index(name)  # Triton keeps compiled kernels by device number
        arch = int(name.removeprefix("sm_")) if name.startswith("sm_") else name
        self.target = GPUTarget("cuda", arch, 32) if isinstance(arch, int) else GPUTarget("hip", arch, 64)

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_current_device(self) -> int:
        return self.index

    def get_current_stream(self, device: int) -> int:
        return 0

    def map_python_to_cpp_type(self, kind: str) -> str:
        return kind

    def get_benchmarker(self) -> None:
        return None


def compile_variant(target: str, variant: Variant) -> Compiled:
    """Compile one variant for one of `TARGETS` and read the result; what cannot be compiled says why.

    Raises:
        RuntimeError: this process interprets Triton.
    """
    if INTERPRETED:
        raise RuntimeError("TRITON_INTERPRET is set, so nothing is compiled here: unset it and start again.")
    kv_dtype = getattr(torch, variant.kv_dtype)
    if target.startswith("sm_"):
        try:
            check_fp8(kv_dtype, (int(target[3:-1]), int(target[-1])))
        except RuntimeError as error:
            return Compiled(target, variant.name, refusal=str(error))
    driver.set_active(StandIn(target))
    grid, arguments, options = decode_launch(
        _tensors(variant, kv_dtype), scale=1.0, k_scale=1.0, v_scale=1.0, window=None, config=None
    )
    kernel = decode_kernel if variant.hints else _without_hints()
    compiled = kernel.warmup(*arguments, grid=grid, **options)
    count = _read_nvidia if target.startswith("sm_") else _read_amd
    return Compiled(target, variant.name, shared_bytes=compiled.metadata.shared, **count(compiled.asm))


def _tensors(variant: Variant, kv_dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """The kernel's tensors without memory: shapes, dtypes and strides are all that compiling looks at."""
    q_dtype, heads = getattr(torch, variant.q_dtype), NUM_KV_HEADS * variant.group
    sizes = {
        "q": ((NUM_SEQS, heads, variant.head_dim), q_dtype),
        "k_cache": ((NUM_BLOCKS, variant.block_size, NUM_KV_HEADS, variant.head_dim), kv_dtype),
        "v_cache": ((NUM_BLOCKS, variant.block_size, NUM_KV_HEADS, variant.head_dim), kv_dtype),
        "block_tables": ((NUM_SEQS, NUM_BLOCKS), torch.int32),
        "context_lens": ((NUM_SEQS,), torch.int32),
        "parts": ((NUM_SEQS, heads, variant.head_dim), q_dtype),
        "lse": ((NUM_SEQS, heads, 1), torch.float32),
    }
    return tuple(torch.empty(size, dtype=dtype, device="meta") for size, dtype in sizes.values())


@cache
def _without_hints() -> triton.JITFunction:
    names = decode_kernel.arg_names[: decode_kernel.arg_names.index("GROUP")]  # the rest are constants
    return triton.jit(decode_kernel.fn, do_not_specialize=["window"], do_not_specialize_on_alignment=names)


def _read_nvidia(asm: dict) -> dict[str, int]:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(asm["cubin"])
        file.flush()
        usage = _output(triton.knobs.nvidia.cuobjdump.path, "-res-usage", file.name)
        code = _output(triton.knobs.nvidia.nvdisasm.path, "-c", file.name)
    return {
        "registers": int(re.search(r"REG:(\d+)", usage)[1]),
        "spills": len(re.findall(r"\b(?:STL|LDL)\b", code)),
        "wide_copies": len(re.findall(WIDE_NVIDIA, code)),
        "matrix_instructions": len(re.findall(r"\bHG?MMA\b", code)),
    }


def _read_amd(asm: dict) -> dict[str, int]:
    code = asm["amdgcn"]
    spills = re.findall(r"\.[sv]gpr_spill_count: *(\d+)", code)
    return {
        "registers": int(re.search(r"\.vgpr_count: *(\d+)", code)[1]),
        "spills": sum(map(int, spills)),
        "wide_copies": len(re.findall(WIDE_AMD, code)),
        "matrix_instructions": len(re.findall(r"\bv_mfma_\w+", code)),
    }


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
