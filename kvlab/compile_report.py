"""The Triton kernel compiled for GPUs that need not be here, and what its machine code says.

In a terminal: `python -m kvlab compile-report`. In a notebook: `read_report()`, which does it in another
process: one process either interprets or compiles Triton's kernels, and talks to one driver.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass

TARGETS = ("sm_80", "sm_90", "gfx942")


@dataclass(frozen=True)
class Variant:
    """One specialisation of the kernel; dtypes are torch's names."""

    name: str
    kv_dtype: str = "bfloat16"
    q_dtype: str = "bfloat16"
    head_dim: int = 128
    group: int = 4
    block_size: int = 16
    hints: bool = True  # whether the compiler is told which addresses and strides are multiples of 16


VARIANTS = (
    Variant("bfloat16"),
    Variant("bfloat16, no hints", hints=False),
    Variant("float16", "float16", "float16"),
    Variant("float8", "float8_e4m3fn"),
    Variant("float32", "float32", "float32"),
    Variant("head_dim 80", head_dim=80),
    Variant("head_dim 256", head_dim=256),
    Variant("block_size 1", block_size=1),
    Variant("group 1", group=1),
    Variant("group 48", group=48),
)


@dataclass(frozen=True)
class Compiled:
    """What one compilation gave; counts are of instructions in the code, however often they run.

    registers: of a thread. spills: instructions that move registers to memory and back. shared_bytes: of a
    program. wide_copies: 16-byte loads; on NVIDIA GPUs the asynchronous ones into shared memory.
    refusal: why there is no code.
    """

    target: str
    variant: str
    registers: int = 0
    spills: int = 0
    shared_bytes: int = 0
    wide_copies: int = 0
    matrix_instructions: int = 0
    refusal: str = ""


def read_report(targets: Iterable[str] = TARGETS, variants: Iterable[str] | None = None) -> list[Compiled]:
    """Compile in a fresh process and return its rows; 1 to 5 s for one that is not in Triton's cache.

    Raises:
        RuntimeError: the process failed; the message is what it said.
    """
    command = [sys.executable, "-m", "kvlab", "compile-report", "--json", "--target", *targets]
    if variants is not None:
        command += ["--variant", *variants]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"compiling failed: {done.stderr.strip() or done.stdout.strip()}")
    return [Compiled(**row) for row in json.loads(done.stdout)]


def table(rows: Iterable[Compiled]) -> str:
    """The rows as text, one line each under a heading."""
    line = "{:<8}{:<20}{:>10}{:>8}{:>9}{:>13}{:>8}".format
    lines = [line("target", "variant", "registers", "spills", "shared", "16 B copies", "matrix")]
    for row in rows:
        numbers = (row.registers, row.spills, row.shared_bytes, row.wide_copies, row.matrix_instructions)
        said = f"{row.target:<8}{row.variant:<20}  {row.refusal}"
        lines.append(said if row.refusal else line(row.target, row.variant, *numbers))
    return "\n".join(lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = [variant.name for variant in VARIANTS]
    parser.add_argument("--target", nargs="+", choices=TARGETS, default=TARGETS, help="for which GPUs")
    parser.add_argument("--variant", nargs="+", choices=names, default=names, help="which variants")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(args: argparse.Namespace) -> int:
    try:
        from kvlab.cross_compile import compile_variant
    except ImportError as error:
        print(f"This needs Triton, which exists for Linux only ({error}).", file=sys.stderr)
        return 1
    chosen = [variant for variant in VARIANTS if variant.name in args.variant]
    try:
        rows = [compile_variant(target, variant) for target in args.target for variant in chosen]
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        print(table(rows))
        print("\nRegisters of a thread, shared memory of a program in bytes; the rest counts instructions.")
    return 0
