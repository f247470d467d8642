"""01.read_log: what four lines of a start-up log say about the pool."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.lines import judge_lines
from kvlab.exercises.trial import Trial

STUB = """\
pool = {  # the float16 log above; B = 16; Qwen2.5-7B takes 57_344 bytes a token
    "blocks in the pool": ...,
    "bytes that they take": ...,
    "blocks of one request": ...,  # of 8,192 tokens
    "GiB that are neither": ...,  # of 21.59 GiB: neither weights nor KV, two decimals
}
"""

SOLUTION = """\
pool = {  # the float16 log above; B = 16; Qwen2.5-7B takes 57_344 bytes a token
    "blocks in the pool": 106_432 // 16,
    "bytes that they take": 106_432 * 57_344,
    "blocks of one request": 8_192 // 16,
    "GiB that are neither": round(21.59 - 14.19 - 5.68, 2),
}
"""

HINTS = (
    "The third line counts tokens. A pool of whole blocks has a multiple of 16 of them, and each token takes "
    "57,344 bytes.",
    "The last line divides: blocks in the pool by blocks of one request of 8,192 tokens. What is neither "
    "weights (first line) nor KV (second line) is `round(21.59 - 14.19 - 5.68, 2)`.",
)

_DUE = {
    "blocks in the pool": (6_652, "106,432 tokens are 106,432 / 16 whole blocks"),
    "bytes that they take": (
        6_103_236_608,
        "106,432 tokens times 57,344 bytes; the 5.68 GiB is a rounded figure",
    ),
    "blocks of one request": (512, "8,192 tokens fill 8,192 / 16 blocks, and 6,652 / 512 = 12.99"),
    "GiB that are neither": (1.72, "21.59 - 14.19 - 5.68 remain for activations and the engine itself"),
}


def check(trial: Trial) -> str:
    judge_lines(trial, _DUE, "pool")
    return "Four lines, one formula: bytes a token decide all of them."


exercise = Exercise(
    id="01.read_log",
    title="Read the log",
    kind="value",
    answer="pool",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "tokens for blocks",
            edited(SOLUTION, "106_432 // 16", "106_432"),
            says="106,432 / 16 whole blocks",
        ),
        WrongAnswer(
            "takes 5.68 at its word",
            edited(SOLUTION, "106_432 * 57_344", "int(5.68 * 2**30)"),
            says="the 5.68 GiB is a rounded figure; got 6098853560",
        ),
        WrongAnswer(
            "rounds a quotient",
            edited(SOLUTION, "8_192 // 16", "6_652 / 12.99"),
            says="8,192 tokens fill 8,192 / 16 blocks",
        ),
        WrongAnswer(
            "forgets the weights",
            edited(SOLUTION, "21.59 - 14.19 - 5.68", "21.59 - 5.68"),
            says="GiB that are neither: expected 1.72",
        ),
    ],
)
