"""What notebook 03 asks before it shows."""

from kvlab.exercises.registry import Prediction

PREDICTIONS = [
    Prediction(
        "03.token6",
        "Request A holds 7 tokens in blocks of 4 slots; its block table is `[7, 1]`. In which slot is token "
        "6?",
        (1, 2),
        "6 // 4 = 1 picks the table's second entry, physical block 1, and 6 % 4 = 2 is the slot inside it.",
    ),
    Prediction(
        "03.heads",
        "A model has 32 query heads that share 8 KV heads. How many heads does the cache hold for each slot?",
        8,
        "only keys and values are cached, and there are 8 of each; the query heads read them and are never "
        "stored.",
    ),
    Prediction(
        "03.late",
        "Blocks of 2 slots. The length is committed before the slot is computed, so token t is written where "
        "t + 1 "
        "belongs. When does the first wrong slot appear?",
        "at the first token",
        "token 0 goes to slot 1, and slot 0 stays as it was, so the audit complains at once. With larger "
        "blocks the "
        "shift stays inside the block for longer before a block is missing, and it looks like a rare bug.",
        choices=("at the first token", "at the first block boundary", "when the pool is full"),
    ),
]
