"""Exercises of notebook 10: how fast a decode step can be, and how to measure how fast it is."""

TITLE = "Decode timing"
NOTEBOOK = "10_decode_timing.ipynb"
EXERCISES = ("step_bytes", "least_time", "share", "whole_step")
