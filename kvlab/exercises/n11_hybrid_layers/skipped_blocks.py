"""11.skipped_blocks: which blocks a sliding window has left behind."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.mistaken import gives
from kvlab.exercises.trial import Trial

STUB = '''\
def skipped_blocks(computed, window, block_size):
    """How many leading blocks of a request no later token will read.

    The next token is number `computed`. It sees itself and the window - 1 tokens before it.

    Args:
        computed: tokens in the cache so far.
        window: W, tokens that a token sees, itself included.
        block_size: B. Blocks are given back whole.

    Returns:
        int: full blocks of tokens that have left the window.

    Worked line: 11 computed, W = 8, B = 4 -> 1: token 11 sees tokens 4 to 11.
    """
    ...  # about 2 lines
'''

SOLUTION = '''\
def skipped_blocks(computed, window, block_size):
    """Leading blocks that no later token will read."""
    skipped = max(0, computed - window + 1)
    return skipped // block_size
'''

HINTS = (
    "Count tokens first: which is the oldest token that the next one sees? All before it are gone for good.",
    "The next token has number `computed`, so the oldest that it sees has number `computed - window + 1`. A "
    "block goes only when its last token has left. Early on that number is negative.",
)

_CASES = [(11, 8, 4), (10, 8, 4), (14, 8, 4), (15, 8, 4), (3, 8, 4), (0, 8, 4), (1_100, 1_024, 16), (5, 1, 1)]


def check(trial: Trial) -> str:
    for computed, window, size in _CASES:
        oldest = max(0, computed - window + 1)
        gives(
            trial,
            computed,
            window,
            size,
            expected=oldest // size,
            given=f"{computed} tokens computed, W = {window}, B = {size}",
            because=f"token {computed} sees tokens {oldest} to {computed}, and {oldest} // {size} blocks "
            f"lie before",
            mistakes={
                "there is no negative number of blocks": (computed - window + 1) // size,
                "that gives back a block of which a token is still seen": -(-oldest // size),
                "that counts tokens, not blocks": oldest,
                "that is a token late: the next token sees itself, too": max(0, computed - window) // size,
                "that is a token early": max(0, computed - window + 2) // size,
            },
        )
    return "The first block goes at 11 tokens, then one more every 4."


exercise = Exercise(
    id="11.skipped_blocks",
    title="Behind the window",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "a token late",
            edited(SOLUTION, "computed - window + 1", "computed - window"),
            says="that is a token late",
        ),
        WrongAnswer(
            "a token early",
            edited(SOLUTION, "computed - window + 1", "computed - window + 2"),
            says="10 tokens computed, W = 8, B = 4: expected 0",
        ),
        WrongAnswer(
            "rounds up",
            edited(SOLUTION, "skipped // block_size", "-(-skipped // block_size)"),
            says="of which a token is still seen",
        ),
        WrongAnswer(
            "tokens",
            edited(SOLUTION, "skipped // block_size", "skipped"),
            says="that counts tokens, not blocks",
        ),
        WrongAnswer(
            "negative",
            edited(SOLUTION, "max(0, computed - window + 1)", "computed - window + 1"),
            says="there is no negative number of blocks",
        ),
    ],
)
