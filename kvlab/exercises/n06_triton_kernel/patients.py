"""Four kernels with one fault each, and what they do to a few batches: symptoms to diagnose from."""

from __future__ import annotations

from kvlab.exercises.exercise import edited
from kvlab.exercises.n06_triton_kernel import addresses, load_tile, online_update, reduce_splits, split_bounds
from kvlab.exercises.n06_triton_kernel.interpreted import NOT_HERE, KernelFailed, available, run_probe

SOLUTIONS = tuple(
    module.SOLUTION for module in (split_bounds, addresses, load_tile, online_update, reduce_splits)
)
NAN = float("nan")

# patient: (its fault, the part as it should be, the part as it is)
FAULTS = {
    "A": (
        "missing mask",
        load_tile.SOLUTION,
        edited(load_tile.SOLUTION, ", mask=inside[:, None], other=0.0", ""),
    ),
    "B": (
        "wrong block size",
        addresses.SOLUTION,
        addresses.SOLUTION.replace("BLOCK_SIZE, mask", "8, mask").replace("% BLOCK_SIZE", "% 8"),
    ),
    "C": ("int32 offset", addresses.SOLUTION, edited(addresses.SOLUTION, ".to(tl.int64)", "")),
    "D": (
        "no rescaling",
        online_update.SOLUTION,
        edited(online_update.SOLUTION, "acc * rescale[:, None]", "acc"),
    ),
}

BATCHES = {
    "5 tokens, blocks of 8": {"lengths": [5], "block_size": 8},
    "5 tokens, NaN in unused slots": {"lengths": [5], "block_size": 8, "poison": NAN},
    "12 tokens, blocks of 16": {"lengths": [12], "block_size": 16},
    "40 and 48 tokens, blocks of 8": {"lengths": [40, 48], "block_size": 8},
    "10 tokens, blocks 2**30 numbers apart": {"lengths": [10], "block_size": 2, "apart": 2**30},
}


def symptoms(patient: str) -> dict[str, str]:
    """What a patient does to each batch.

    Raises:
        ValueError: there is no such patient.
        RuntimeError: there is no Triton here.
    """
    if patient not in FAULTS:
        raise ValueError(f"no patient is called {patient!r}: choose one of {', '.join(FAULTS)}.")
    if not available():
        raise RuntimeError(NOT_HERE)
    _, right, wrong = FAULTS[patient]
    source = "\n\n".join(wrong if part == right else part for part in SOLUTIONS)
    found = {}
    for name, batch in BATCHES.items():
        try:
            error = run_probe(source, "kernel", [batch])[0]
            found[name] = "NaN" if error != error else "right" if error < 2e-5 else f"off by {error:.2g}"
        except KernelFailed:
            found[name] = "crash: an address outside the cache"
    return found


def examine(patient: str) -> None:
    """Print a patient's symptoms, a line for each batch."""
    try:
        found = symptoms(patient)
    except (ValueError, RuntimeError) as problem:
        print(problem)
        return
    print(f"Patient {patient}")
    for name, what in found.items():
        print(f"  {name:<38} {what}")
