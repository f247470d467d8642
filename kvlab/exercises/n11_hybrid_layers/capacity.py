"""11.capacity: what fp8 does to the figures of a log."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.lines import judge_lines
from kvlab.exercises.trial import Trial

STUB = """\
fp8 = {  # Qwen2.5-7B, 6_104_000_000 bytes, B = 16; float16: 57_344 bytes a token, 106_432 tokens
    "bytes of a block": ...,
    "tokens": ...,  # whole blocks only
    "tokens beyond twice float16": ...,
    "requests of 8,192 at once": ...,  # whole ones
}
"""

SOLUTION = """\
fp8 = {  # Qwen2.5-7B, 6_104_000_000 bytes, B = 16; float16: 57_344 bytes a token, 106_432 tokens
    "bytes of a block": 16 * 57_344 // 2,
    "tokens": 6_104_000_000 // 458_752 * 16,
    "tokens beyond twice float16": 212_880 - 2 * 106_432,
    "requests of 8,192 at once": 13_305 // 512,
}
"""

HINTS = (
    "fp8 takes one byte a number instead of two, so everything that is counted in bytes halves.",
    "Blocks first: `6_104_000_000 // 458_752`, whole blocks only. A request of 8,192 tokens takes 512 of "
    "them.",
)

_DUE = {
    "bytes of a block": (458_752, "16 tokens take 28,672 bytes each, half of 57,344"),
    "tokens": (212_880, "the budget holds 13,305 whole blocks of 458,752 bytes, 16 tokens each"),
    "tokens beyond twice float16": (16, "212,880 - 2 * 106,432: the bytes left over in float16 hold a block"),
    "requests of 8,192 at once": (25, "13,305 / 512 = 25.99, and a part of a request cannot run"),
}


def check(trial: Trial) -> str:
    judge_lines(trial, _DUE, "fp8")
    return "Twice the tokens, and one block more: this is the second log of notebook 01."


exercise = Exercise(
    id="11.capacity",
    title="Half the bytes",
    kind="value",
    answer="fp8",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "a token for a block",
            edited(SOLUTION, "16 * 57_344 // 2", "57_344 // 2"),
            says="16 tokens take 28,672",
        ),
        WrongAnswer(
            "exactly twice",
            edited(SOLUTION, "6_104_000_000 // 458_752 * 16", "2 * 106_432"),
            says="the budget holds 13,305 whole blocks",
        ),
        WrongAnswer(
            "no difference",
            edited(SOLUTION, "212_880 - 2 * 106_432", "0"),
            says="the bytes left over in float16 hold a block",
        ),
        WrongAnswer(
            "rounds up", edited(SOLUTION, "13_305 // 512", "26"), says="a part of a request cannot run"
        ),
    ],
)
