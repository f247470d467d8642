"""What the notebook does with the learner's parts besides checking them; says so where there is no Triton."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvlab.compile_report import Compiled, read_report, table
from kvlab.exercises.exercise import Refused
from kvlab.exercises.n06_triton_kernel.interpreted import (
    NOT_HERE,
    KernelFailed,
    available,
    run_probe,
    text_of,
)
from kvlab.exercises.telling import say

# As compiled with Triton 3.7.1, for machines that have none.
STORED_WITH = "Triton 3.7.1"
STORED = (
    Compiled("sm_90", "bfloat16", 108, 0, 39168, 32, 32),
    Compiled("sm_90", "bfloat16, no hints", 255, 64, 22528, 0, 32),
)


def bounds_of(split_bounds: Callable) -> Callable | None:
    """A learner's split_bounds for `ProgramMap(bounds=...)`; None, with a sentence, where it cannot run."""

    def bounds(length: int, split: int, num_splits: int, tile: int) -> tuple[int, int]:
        case = length, num_splits, tile
        if case not in known:
            known[case] = run_probe(source, "split_bounds", [case])[0]
        return tuple(known[case][split])

    known: dict[tuple, list] = {}
    try:
        source = text_of([split_bounds]) if available() else ""
        if source:
            bounds(1, 0, 1, 1)
            return bounds
        say(NOT_HERE)
    except (Refused, KernelFailed) as problem:
        say(f"This draws kvlab's split_bounds: yours {problem}.")
    return None


def same_tokens(kernel: Sequence[Callable], count: int = 4, *, real_model: bool = False) -> None:
    """Decode a prompt through the kernel of these parts and through the reference; print both.

    real_model: SmolLM2 instead of a small random model; interpreted, a token then takes seconds.
    """
    if not available():
        say(NOT_HERE)
        return
    try:
        yours, reference = run_probe(
            text_of(kernel), "tokens", count, real_model, seconds=300 if real_model else None
        )
    except (Refused, KernelFailed) as problem:
        say(f"Your kernel {problem}.")
        return
    for name, (ids, text) in (("your kernel:", yours), ("reference:", reference)):
        print(f"{name:12} {ids} {text!r}")
    print("the same tokens" if yours == reference else "NOT the same tokens")


def compiled() -> None:
    """Print what the hints buy: kvlab's kernel compiled twice for a Hopper GPU, which need not be here."""
    names = [row.variant for row in STORED]
    try:
        if not available():
            raise RuntimeError(NOT_HERE)
        rows = read_report(("sm_90",), names)
    except RuntimeError as problem:
        say(f"{problem} These are the numbers of {STORED_WITH}.")
        rows = STORED
    print(table(rows))
