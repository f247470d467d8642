"""02.parts: a request's piece of memory, divided into what is used, what will be, and what never will."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.mistaken import gives
from kvlab.exercises.trial import Trial

STUB = '''\
def parts(size, tokens, total):
    """What the slots of one reserved piece are used for, while the request is running.

    Args:
        size: slots in the piece, at least `total`.
        tokens: how many tokens it holds now.
        total: how many it will hold at its end, at least `tokens`.

    Returns:
        (tokens, reserved, internal): slots that hold a token, empty slots that it WILL fill, and empty
        slots that it will NEVER fill. The three add up to `size`.

    Worked line: 16 slots, 5 tokens now, 9 in the end -> (5, 4, 7).
    """
    ...  # 1 line
'''

SOLUTION = '''\
def parts(size, tokens, total):
    """(tokens, reserved, internal) of one reserved piece."""
    return tokens, total - tokens, size - total
'''

HINTS = (
    "Walk along the piece from left to right: filled slots up to `tokens`, then slots that are still to be "
    "filled up to `total`, then the rest.",
    "Each part is the difference of two of the three numbers. Check that they add up to `size`.",
)

_CASES = [(16, 5, 9), (16, 5, 5), (16, 1, 16), (2048, 161, 499), (8, 8, 8)]


def check(trial: Trial) -> str:
    for size, tokens, total in _CASES:
        gives(
            trial,
            size,
            tokens,
            total,
            expected=(tokens, total - tokens, size - total),
            given=f"{size} slots, {tokens} tokens now, {total} in the end",
            because=f"slots up to {tokens} are filled, those up to {total} will be, and {size} - {total} "
            f"never",
            mistakes={
                "all empty slots were counted as never filled": (tokens, 0, size - tokens),
                "all empty slots were counted as reserved": (tokens, size - tokens, 0),
                "the last two have changed places": (tokens, size - total, total - tokens),
                "empty slots that will be filled were counted twice": (tokens, total - tokens, size - tokens),
            },
        )
    return "5 of 16 used and no more to come: 11 slots of internal fragmentation."


exercise = Exercise(
    id="02.parts",
    title="Three parts of a reservation",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "all empty slots are lost",
            edited(SOLUTION, "total - tokens, size - total", "0, size - tokens"),
            says="all empty slots were counted as never filled",
        ),
        WrongAnswer(
            "all empty slots are reserved",
            edited(SOLUTION, "total - tokens, size - total", "size - tokens, 0"),
            says="all empty slots were counted as reserved",
        ),
        WrongAnswer(
            "the other way round",
            edited(SOLUTION, "total - tokens, size - total", "size - total, total - tokens"),
            says="the last two have changed places",
        ),
        WrongAnswer(
            "counts the reserved ones twice",
            edited(SOLUTION, "size - total", "size - tokens"),
            says="were counted twice",
        ),
    ],
)
