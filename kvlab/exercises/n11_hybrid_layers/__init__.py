"""Exercises of notebook 11: layers that forget, several groups in one pool, and numbers of one byte."""

TITLE = "Hybrid layers, windows, fp8"
NOTEBOOK = "11_hybrid_layers.ipynb"
EXERCISES = ("skipped_blocks", "hybrid_bytes", "request_blocks", "alignment", "capacity", "divergence")
