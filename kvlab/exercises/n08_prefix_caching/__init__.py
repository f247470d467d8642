"""Exercises of notebook 08: blocks that are found again by what they hold."""

TITLE = "Prefix caching"
NOTEBOOK = "08_prefix_caching.ipynb"
EXERCISES = (
    "chain_hashes",
    "longest_prefix",
    "hit_lengths",
    "release",
    "take",
    "touch",
    "savings",
    "engine_trace",
)
