"""02.last_block: what paging still wastes."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.mistaken import gives
from kvlab.exercises.trial import Trial

STUB = '''\
def last_block(length, block_size):
    """Empty slots in the last block of a request.

    Args:
        length: tokens, at least 1.
        block_size: B, slots a block.

    Returns:
        int: 0 when the last block is full, never more than B - 1.

    Worked line: 10 tokens, B = 4 -> 2: three blocks have 12 slots.
    """
    ...  # 1 line
'''

SOLUTION = '''\
def last_block(length, block_size):
    """Empty slots in the last block of a request."""
    return -length % block_size
'''

HINTS = (
    "How many blocks does the request hold, how many slots do they have, and how many of these hold a token?",
    "`(length + block_size - 1) // block_size * block_size - length` does it. Shorter: `-length % "
    "block_size`, "
    "the distance to the next multiple.",
)

_CASES = [(9, 4), (10, 4), (8_192, 16), (100, 16), (100, 8), (1, 16), (16, 16), (17, 16), (7, 1), (8_177, 16)]


def check(trial: Trial) -> str:
    for length, size in _CASES:
        blocks = -(-length // size)
        gives(
            trial,
            length,
            size,
            expected=blocks * size - length,
            given=f"{length} tokens, B = {size}",
            because=f"{blocks} block{'s' * (blocks != 1)} have {blocks * size} slots, and {length} hold a "
            f"token",
            mistakes={
                "that is how many tokens the last block holds": length % size,
                "a full last block wastes nothing": size - length % size,
                "that is the most it could be": size - 1,
                "that is a share, not slots": (blocks * size - length) / (blocks * size),
            },
        )
    return (
        "100 tokens waste 12 slots at B = 16 and 4 at B = 8; at 8,192 tokens the most is 15, which is 0.18 %."
    )


exercise = Exercise(
    id="02.last_block",
    title="The last block",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "tokens in the last block",
            edited(SOLUTION, "-length %", "length %"),
            says="got 1: that is how many tokens the last block holds",
        ),
        WrongAnswer(
            "a full block counts as empty",
            edited(SOLUTION, "-length % block_size", "block_size - length % block_size"),
            says="8192 tokens, B = 16: expected 0, because 512 blocks have 8192 slots, and 8192 hold a "
            "token; "
            "got 16: a full last block wastes nothing",
        ),
        WrongAnswer(
            "always the most",
            edited(SOLUTION, "-length % block_size", "block_size - 1"),
            says="that is the most it could be",
        ),
        WrongAnswer(
            "a share",
            edited(
                SOLUTION,
                "-length % block_size",
                "-length % block_size / (length + -length % block_size)",
            ),
            says="that is a share, not slots",
        ),
    ],
)
