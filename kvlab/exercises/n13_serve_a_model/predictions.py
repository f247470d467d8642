"""The predictions of notebook 13."""

from kvlab.exercises.registry import Prediction

PREDICTIONS = (
    Prediction(
        "13.reuse",
        "A's 44 tokens take blocks 0 to 10 and B's 36 take 11 to 19, of 24 blocks of 4. A stops after 7 "
        "tokens, when both have grown into the last free blocks, and is released. Which block does B get "
        "next?",
        0,
        "the free list is empty when A leaves, so its head is the first block of A's table: B writes where "
        "A's question stood.",
    ),
    Prediction(
        "13.difference",
        "The same prompts with blocks of 1, 2, 3 and 16 tokens, against contiguous tensors. How far apart "
        "are the logits at most?",
        "about 0.0001",
        "the same numbers are added, in another order, and float32 rounds each sum. The lead of the best "
        "token is a thousand times larger.",
        ("exactly 0", "about 0.0001", "about 1"),
    ),
    Prediction(
        "13.permuted",
        "The file stores the rows of the Q and K matrices in another order than this decoder rotates them. "
        "Leave them so: what happens?",
        "it runs, and talks nonsense",
        "every shape still fits, so nothing complains; only positions no longer mean anything.",
        ("an error", "the same answer", "it runs, and talks nonsense"),
    ),
    Prediction(
        "13.swapped",
        "A's table is [0, 1, 2] with blocks of 16; blocks 0 and 1 are full. Entries 0 and 1 change places "
        "while A reads. What does A say now?",
        "the same",
        "attention adds up all positions, and a sum does not care about order: each K carries its position.",
        ("the same", "something else", "an error"),
    ),
    Prediction(
        "13.fork",
        "A holds 44 tokens in blocks of 16. C is forked from it, and then each writes 7 tokens. How many "
        "blocks do both hold together?",
        6,
        "the two full blocks are shared. The partial one is copied for the first writer, and each needs one "
        "more for tokens 48 to 50: 2 + 2 + 2.",
    ),
)
