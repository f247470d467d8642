"""The prediction of notebook 00."""

from kvlab.exercises.registry import Prediction

PREDICTIONS = (
    Prediction(
        "00.blocks",
        "A request holds 7 tokens, in blocks of 4. How many blocks does it take?",
        2,
        "one block is full with 4 tokens; the other 3 need a second one, and its last slot stays empty.",
    ),
)
