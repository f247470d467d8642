"""Exercises of notebook 04: the operations of a block manager, and what proves them."""

TITLE = "Block manager"
NOTEBOOK = "04_block_manager.ipynb"
EXERCISES = ("append_slot", "release", "append", "check_books", "manager")
