"""Exercises of notebook 01: from a model's shape to bytes, blocks, requests, and back from a log."""

TITLE = "How big is a token?"
NOTEBOOK = "01_how_big_is_a_token.ipynb"
EXERCISES = ("token_bytes", "mistakes", "blocks", "requests", "read_log", "budgets", "budget")
