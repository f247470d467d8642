"""The exercise of notebook 00."""

TITLE = "Start here"
NOTEBOOK = "00_start_here.ipynb"
EXERCISES = ("blocks_needed",)
