"""Exercises of notebook 05: attention over a sequence that lies in blocks."""

TITLE = "Paged attention"
NOTEBOOK = "05_paged_attention.ipynb"
EXERCISES = ("one_head", "merge", "paged_loop", "whole_block", "grouped", "prefill")
