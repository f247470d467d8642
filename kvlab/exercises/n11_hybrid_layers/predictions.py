"""What notebook 11 asks before it shows."""

from kvlab.exercises.registry import Prediction

PREDICTIONS = [
    Prediction(
        "11.window",
        "A layer with a window of 8 tokens, in blocks of 4. One token comes at a time. How many tokens "
        "are in the cache when the first block can be given back?",
        11,
        "the next token, number 11, sees itself and 7 before it, tokens 4 to 11. Block 0 holds tokens 0 "
        "to 3, and no later token will see them either.",
    ),
    Prediction(
        "11.factor",
        "Qwen3.5-4B has 32 layers; every fourth is full attention, the others are linear and keep a state of "
        "fixed size. By what factor does the formula of notebook 01 overestimate a token, if you put in 32?",
        4,
        "only 8 of the 32 layers keep K and V of each token: 32,768 bytes, not 131,072.",
    ),
    Prediction(
        "11.again",
        "A request of 40 tokens has ended; it had a full group and one with a window of 8, in blocks of 4. "
        "Since then blocks were used again: the full group still has the first 36 tokens, the other only its "
        "last two blocks. The same prompt comes again. How many of its 40 tokens need no computing?",
        0,
        "the full group could start after 36 tokens or fewer. The other finds the window of its next token "
        "only after 40. No start suits both, so all is computed again.",
    ),
    Prediction(
        "11.fp8",
        "A budget holds 6,652 blocks in float16, with less than a block left over. How many does it hold in "
        "fp8, if what is left over is more than half a block?",
        13305,
        "each block halves, so 2 * 6,652 = 13,304, and the part that was left over is large enough for one "
        "more of the halves.",
    ),
]
