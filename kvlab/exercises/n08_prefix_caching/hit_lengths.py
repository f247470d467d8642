"""08.hit_lengths: how many tokens hit when the same prompt comes again."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.n08_prefix_caching.worked import check_lines
from kvlab.exercises.trial import Trial

STUB = """\
hit_lengths = {  # B = 16; the very same prompt was computed before and is still cached
    "16 tokens": ...,  # how many of them need no computing?
    "17 tokens": ...,
    "32 tokens": ...,
    "33 tokens": ...,
    "48 tokens": ...,
}
"""

SOLUTION = """\
hit_lengths = {  # B = 16; the very same prompt was computed before and is still cached
    "16 tokens": 0,  # 15 // 16 = 0 blocks
    "17 tokens": 16,  # 16 // 16 = 1
    "32 tokens": 16,  # 31 // 16 = 1
    "33 tokens": 32,  # 32 // 16 = 2
    "48 tokens": 32,  # 47 // 16 = 2
}
"""

HINTS = (
    "Two rules: only whole blocks hit, and the last token is always computed.",
    "So take one token off first, then round down to a multiple of 16: (n - 1) // 16 * 16.",
)


def check(trial: Trial) -> str:
    due = {}
    for tokens in (16, 17, 32, 33, 48):
        blocks = (tokens - 1) // 16
        because = (
            f"one token is left to compute, and the other {tokens - 1} hold {blocks} whole block(s) of 16"
        )
        due[f"{tokens} tokens"] = (blocks * 16, because)
    check_lines(trial, "hit_lengths", due)
    return "A prompt of exactly two blocks hits only one of them."


exercise = Exercise(
    id="08.hit_lengths",
    title="How long is a hit?",
    kind="value",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "everything hits",
            edited(SOLUTION, ": 0,", ": 16,"),
            says="16 tokens: expected 0, because one token is left to compute, and the other 15 hold 0 whole",
        ),
        WrongAnswer(
            "all but one token",
            edited(SOLUTION, ": 16,  # 31", ": 31,  # 31"),
            says="32 tokens: expected 16, because one token is left to compute, and the other 31 hold 1 "
            "whole",
        ),
        WrongAnswer(
            "blocks, not tokens", edited(SOLUTION, ": 16,  # 16", ": 1,  # 16"), says="17 tokens: expected 16"
        ),
        WrongAnswer(
            "three full blocks", edited(SOLUTION, ": 32,  # 47", ": 48,  # 47"), says="48 tokens: expected 32"
        ),
    ],
)
