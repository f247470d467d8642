"""Exercises of notebook 03: from a token's position to its slot, and to the element in the tensor."""

TITLE = "Address translation"
NOTEBOOK = "03_address_translation.ipynb"
EXERCISES = ("translate", "worked", "slot_mapping", "flat_address")
