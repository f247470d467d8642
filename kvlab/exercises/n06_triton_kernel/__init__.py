"""Exercises of notebook 06: the parts of a Triton kernel, run by Triton's interpreter."""

TITLE = "A Triton kernel"
NOTEBOOK = "06_triton_kernel.ipynb"
EXERCISES = (
    "split_bounds",
    "addresses",
    "load_tile",
    "online_update",
    "reduce_splits",
    "kernel",
    "diagnosis",
)
