"""What notebook 02 asks before it shows."""

from kvlab.exercises.registry import Prediction

PREDICTIONS = [
    Prediction(
        "02.reserve",
        "Every request gets 16 slots in one piece when it arrives. A comes, writes 5 tokens and ends. How "
        "many "
        "of its slots were never used?",
        11,
        "16 - 5 = 11 slots belonged to A all the time, and nobody else could have them.",
    ),
    Prediction(
        "02.halve",
        "Requests of 100 tokens waste 12 slots each in blocks of 16. How many do they waste in blocks of 8?",
        4,
        "100 tokens take 7 blocks of 16, which are 112 slots, but 13 blocks of 8, which are 104.",
    ),
    Prediction(
        "02.paged",
        "The best that a server could do with reservations, if it knew every length in advance, was to fill "
        "38 % of the memory with tokens. How much did paging fill in the paper?",
        "about 96 %",
        "only last blocks are partly empty, and every free slot can be handed to anybody.",
        choices=("about 60 %", "about 80 %", "about 96 %"),
    ),
]
