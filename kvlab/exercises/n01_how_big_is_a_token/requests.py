"""01.requests: how many requests of one length fit a pool at once."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.mistaken import gives
from kvlab.exercises.trial import Trial

STUB = '''\
def requests(num_blocks, block_size, length):
    """How many requests of `length` tokens a pool holds at the same time.

    Args:
        num_blocks: blocks that requests can have.
        block_size: B, tokens a block.
        length: tokens of each request, at least 1. Each has whole blocks of its own.

    Returns:
        int: whole requests.

    Worked line: 10 blocks, B = 4, length 9 -> 3, because 9 tokens take 3 blocks.
    """
    ...  # 2 lines
'''

SOLUTION = '''\
def requests(num_blocks, block_size, length):
    """Requests of `length` tokens that a pool holds at the same time."""
    blocks_of_one = (length + block_size - 1) // block_size
    return num_blocks // blocks_of_one
'''

HINTS = (
    "Two requests never share a last block here, so count in blocks: how many does one request hold? (You "
    "wrote that line in notebook 00.)",
    "`(length + block_size - 1) // block_size` rounds up. Then round down: the pool divided by the blocks of "
    "one request, without the fraction.",
)

_CASES = [(10, 4, 9), (6_652, 16, 8_192), (13_305, 16, 8_192), (6_652, 16, 100), (6_652, 16, 8_193)]
_CASES += [(10_240, 16, 8_192), (511, 16, 8_192), (512, 16, 8_192), (3, 16, 1)]


def check(trial: Trial) -> str:
    for blocks, size, length in _CASES:
        one = -(-length // size)
        gives(
            trial,
            blocks,
            size,
            length,
            expected=blocks // one,
            given=f"{blocks} blocks, B = {size}, length {length}",
            because=f"one request takes {one} block{'s' * (one != 1)} of its own, and {blocks} / {one} = "
            f"{blocks / one:.2f}",
            mistakes={
                "that lets requests share their last blocks": blocks * size // length,
                "that counts only the full blocks of a request": blocks // max(1, length // size),
                "a fraction of a request cannot run": blocks / one,
                "that rounds up to a request that does not fit": round(blocks / one),
                "a request that fills its blocks needs no further one": blocks // (length // size + 1),
            },
        )
    return "6,652 blocks hold 12 requests of 8,192 tokens; the log's 12.99x is the quotient before rounding."


exercise = Exercise(
    id="01.requests",
    title="Requests at once",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "shares last blocks",
            edited(SOLUTION, "num_blocks // blocks_of_one", "num_blocks * block_size // length"),
            says="got 4: that lets requests share their last blocks",
        ),
        WrongAnswer(
            "full blocks only",
            edited(SOLUTION, "(length + block_size - 1) // block_size", "max(1, length // block_size)"),
            says="got 5: that counts only the full blocks",
        ),
        WrongAnswer(
            "rounds the quotient",
            edited(SOLUTION, "num_blocks // blocks_of_one", "round(num_blocks / blocks_of_one)"),
            says="got 13: that rounds up to a request that does not fit",
        ),
        WrongAnswer(
            "keeps the fraction",
            edited(SOLUTION, "num_blocks // blocks_of_one", "num_blocks / blocks_of_one"),
            says="a fraction of a request cannot run",
        ),
        WrongAnswer(
            "always one block more",
            edited(SOLUTION, "(length + block_size - 1) // block_size", "length // block_size + 1"),
            says="a request that fills its blocks needs no further one",
        ),
    ],
)
