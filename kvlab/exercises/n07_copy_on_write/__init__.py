"""Exercises of notebook 07: forks, copy-on-write, and what they save."""

TITLE = "Copy-on-write"
NOTEBOOK = "07_copy_on_write.ipynb"
EXERCISES = ("price", "fork", "append_slot", "release", "prove", "manager", "beam_step", "saved_share")
