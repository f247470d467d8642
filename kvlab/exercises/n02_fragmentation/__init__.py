"""Exercises of notebook 02: where memory goes without paging, what paging leaves, and how to choose "
"blocks."""

TITLE = "Fragmentation"
NOTEBOOK = "02_fragmentation.ipynb"
EXERCISES = ("parts", "no_room", "last_block", "by_hand", "choose_block_size")
