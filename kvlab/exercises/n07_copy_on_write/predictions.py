"""What notebook 07 asks before it shows."""

from kvlab.exercises.registry import Prediction

PREDICTIONS = [
    Prediction(
        "07.blocks",
        "A prompt of 10 tokens, blocks of 4, four answers with one token each so far. How many blocks do "
        "they hold "
        "when every answer has a copy of the prompt, and how many when its full blocks are shared?",
        (12, 6),
        "four times ceil(11 / 4) = 3 blocks, against 2 full blocks that exist once and 4 blocks to write "
        "into.",
    ),
    Prediction(
        "07.twice",
        "An odd table names its blocks twice: `[0, 1, 0, 1]`. It is forked once. What is the count of block "
        "0?",
        2,
        "a count says how many tables hold the block, and that is two tables. An engine that counted each "
        "entry reached 3, and the block was never free again.",
    ),
    Prediction(
        "07.in_place",
        "A, B and C hold the same partial block with 2 of its 4 slots filled. B appends a token, then C, "
        "then A. "
        "Who writes in place?",
        "only A",
        "B and C find others beside them and go on in copies; A is the last holder, and nobody else can see "
        "what "
        "it writes.",
        choices=("only B", "only A", "all of them", "nobody"),
    ),
    Prediction(
        "07.audit",
        "Two planted bugs: a lost decrement (a count stays too high) and an early free (a block is handed "
        "out "
        "while somebody still holds it). Which of them does a sentinel audit find?",
        "the early free",
        "a block that never comes back holds no wrong value: nobody's text suffers, the pool only shrinks. "
        "Counting "
        "the free blocks finds it, reading the slots does not.",
        choices=("the lost decrement", "the early free", "both"),
    ),
    Prediction(
        "07.beams",
        "Three beams A, B, C. The three best continuations belong to A, A and B. How many tables are "
        "released, and "
        "how many forked?",
        (1, 1),
        "C has no survivor and is released; A survives twice, once as itself and once as a fork.",
    ),
    Prediction(
        "07.copies",
        "The first round forks A twice: three beams share a partial block with 2 of its 4 slots filled, "
        "and each appends one token. How many slots are copied in this round?",
        4,
        "the first two go on in copies of 2 slots each; the third is the last holder and writes in place.",
    ),
    Prediction(
        "07.alpaca",
        "Prompts of about 19 tokens, answers of about 58, B = 16, six answers to each prompt. How much of "
        "the "
        "memory does sharing save?",
        "about a tenth",
        "the answers are three times as long as the prompt and none of theirs is shared, and a prompt of "
        "fewer "
        "than 16 tokens does not fill a single block.",
        choices=("about a tenth", "about a third", "five sixths"),
    ),
]
