"""00.blocks_needed: how many whole blocks a number of tokens takes."""

from kvlab.exercises.exercise import Exercise, WrongAnswer
from kvlab.exercises.trial import Trial

STUB = '''def blocks_needed(num_tokens, block_size):
    """How many blocks of `block_size` tokens hold `num_tokens` tokens.

    blocks_needed(7, 4) -> 2: one full block, and one with 3 tokens in it.
    """
    ...  # 1 line
'''

SOLUTION = """def blocks_needed(num_tokens, block_size):
    return (num_tokens + block_size - 1) // block_size
"""

HINTS = (
    "`7 // 4` is 1: it counts only the blocks that are full. Which block does it leave out?",
    "Add just enough to the tokens that a partly filled block counts too, and a full one does not count "
    "twice: `block_size - 1`.",
)

WRONG = (
    WrongAnswer(
        "only full blocks",
        "def blocks_needed(num_tokens, block_size):\n    return num_tokens // block_size\n",
        "7 tokens in blocks of 4: expected 2",
    ),
    WrongAnswer(
        "always one more",
        "def blocks_needed(num_tokens, block_size):\n    return num_tokens // block_size + 1\n",
        "8 tokens in blocks of 4: expected 2",
    ),
    WrongAnswer(
        "not a whole number",
        "def blocks_needed(num_tokens, block_size):\n    return num_tokens / block_size\n",
        "got 1.75",
    ),
)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("s are" if number != 1 else " is")


def _check(trial: Trial) -> str:
    for num_tokens, block_size in [(7, 4), (8, 4), (9, 4), (0, 4), (1, 16), (5, 1), (40, 16)]:
        full, rest = divmod(num_tokens, block_size)
        because = f"{_count(full, 'block')} full" + (f" and {_count(rest, 'token')} over" if rest else "")
        given = f"{num_tokens} tokens in blocks of {block_size}"
        trial.gives(num_tokens, block_size, expected=full + (rest > 0), given=given, because=because)
    return "Full blocks count once, and a partly filled one counts whole."


exercise = Exercise(
    id="00.blocks_needed",
    title="Blocks for a number of tokens",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    wrong=WRONG,
    check=_check,
)
