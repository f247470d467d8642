"""What notebook 01 asks before it shows."""

from kvlab.exercises.registry import Prediction

PREDICTIONS = [
    Prediction(
        "01.token",
        "Qwen2.5-7B has 28 layers, 28 query heads, 4 KV heads and heads of 128 numbers, in float16. How many "
        "bytes of KV does one token leave behind?",
        57344,
        "K and V, in 28 layers, 4 KV heads, 128 numbers, 2 bytes each: 2 * 28 * 4 * 128 * 2 = 57,344.",
    ),
    Prediction(
        "01.one_x",
        "A pool has 512 blocks of 16 tokens, and the engine keeps one of them as its null block. The log "
        "says "
        "1.00x for requests of 8,192 tokens. How many such requests can finish?",
        0,
        "8,192 tokens need 512 blocks, and requests can have only 511. Real engines accepted such a request "
        "and then waited for ever; it has to be refused when it arrives.",
    ),
    Prediction(
        "01.saved",
        "The same 1,000 tokens, once in a contiguous cache of exactly the right size, once in full blocks. "
        "How many bytes a token does paging save?",
        0,
        "a token's K and V are the same numbers in either place. Paging changes when slots are taken, what "
        "shape they have, and when they come back.",
    ),
]
