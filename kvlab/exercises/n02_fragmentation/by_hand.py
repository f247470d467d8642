"""02.by_hand: the 8.9 % of the paper's first bar, from two numbers."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.lines import judge_lines
from kvlab.exercises.trial import Trial

STUB = """\
by_hand = {  # OPT-13B: 819_200 bytes a token, 12 GiB for KV, 2,048 slots reserved for everyone
    "slots in 12 GiB": ...,
    "requests at once": ...,
    "slots that belong to nobody": ...,
    "percent of all slots": ...,  # one decimal
}
"""

SOLUTION = """\
by_hand = {  # OPT-13B: 819_200 bytes a token, 12 GiB for KV, 2,048 slots reserved for everyone
    "slots in 12 GiB": 12 * 2**30 // 819_200,
    "requests at once": 15_728 // 2_048,
    "slots that belong to nobody": 15_728 % 2_048,
    "percent of all slots": round(100 * 1_392 / 15_728, 1),
}
"""

HINTS = (
    "Notebook 01 again: whole slots in a budget, then whole reservations of 2,048 slots in those.",
    "7 reservations take 7 * 2,048 slots. What is left is too small for an eighth; divide it by all 15,728.",
)

_DUE = {
    "slots in 12 GiB": (
        15_728,
        "12 * 2**30 bytes hold 15,728 tokens of 819,200 bytes, and a part of one more",
    ),
    "requests at once": (7, "15,728 / 2,048 = 7.7, and only whole reservations count"),
    "slots that belong to nobody": (1_392, "15,728 - 7 * 2,048 slots are too few for an eighth request"),
    "percent of all slots": (8.9, "1,392 of 15,728 slots are 8.85 %"),
}


def check(trial: Trial) -> str:
    judge_lines(trial, _DUE, "by_hand")
    return "That is the 8.9 % which the paper measured as external, whatever the requests were."


exercise = Exercise(
    id="02.by_hand",
    title="8.9 % by hand",
    kind="value",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "12 GB for 12 GiB",
            edited(SOLUTION, "12 * 2**30", "12 * 10**9"),
            says="slots in 12 GiB: expected 15728",
        ),
        WrongAnswer(
            "part of a request",
            edited(SOLUTION, "15_728 // 2_048", "15_728 / 2_048"),
            says="only whole reservations count",
        ),
        WrongAnswer(
            "slots in use",
            edited(SOLUTION, "15_728 % 2_048", "7 * 2_048"),
            says="too few for an eighth request",
        ),
        WrongAnswer(
            "a share of what is used",
            edited(SOLUTION, "100 * 1_392 / 15_728", "100 * 1_392 / (7 * 2_048)"),
            says="1,392 of 15,728 slots are 8.85 %; got 9.7",
        ),
    ],
)
