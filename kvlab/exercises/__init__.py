"""Exercises: check an answer, keep a prediction, see the progress, load an answer in a later notebook."""

from kvlab.exercises.answers import load_answer, ready
from kvlab.exercises.asking import predict, reveal
from kvlab.exercises.blocks import Blocks, SharedBlocks, manager_from
from kvlab.exercises.board import progress
from kvlab.exercises.checking import check
from kvlab.exercises.registry import exercise_ids, get

__all__ = [
    "Blocks",
    "SharedBlocks",
    "check",
    "exercise_ids",
    "get",
    "load_answer",
    "manager_from",
    "predict",
    "progress",
    "ready",
    "reveal",
]
