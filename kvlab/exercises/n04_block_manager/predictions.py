"""What notebook 04 asks before it shows."""

from kvlab.exercises.registry import Prediction

PREDICTIONS = [
    Prediction(
        "04.token7",
        "A holds 7 tokens, blocks have 4 slots, the table is `[7, 1]`, and block 3 is next on the free list. "
        "A appends "
        "two tokens, one after the other. Into which block does each of them go?",
        (1, 3),
        "token 7 takes the last slot of block 1; token 8 finds 8 % 4 = 0, so block 3 is allocated for it.",
    ),
    Prediction(
        "04.interleaved",
        "Blocks of 2 slots are handed out in the order 0, 1, 2, 3. Tokens arrive in the order A, A, B, A, B. "
        "What is A's block table?",
        (0, 2),
        "A fills block 0, B takes block 1, and A's third token needs a new block: the next free one is 2. "
        "B's second "
        "token still fits into block 1.",
    ),
    Prediction(
        "04.full",
        "A pool has 4 blocks of 2 slots. A holds 5 tokens, and B wants to append 3 at once. What happens?",
        "refused, nothing changed",
        "A holds 3 blocks, so 1 is free, and B needs 2. A manager that takes the one and then gives up has "
        "lost a block "
        "for a request that never ran.",
        choices=("one block is taken, then an error", "refused, nothing changed", "B waits for a block"),
    ),
    Prediction(
        "04.forgotten",
        "A `release` gives the blocks back but forgets to remove the request's length. How many operations "
        "does the "
        "shortest sequence have that shows it?",
        3,
        "append A; release A; append A. The second life of A starts in the middle, at offset 1 of a new "
        "block. After "
        "the release alone everything looks right: nobody asks for the length of a request that is gone.",
    ),
]
