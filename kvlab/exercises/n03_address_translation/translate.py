"""03.translate: a position of one request to its physical block and offset."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.trial import Trial

STUB = '''\
def translate(block_table, block_size, position):
    """The slot that holds token number `position` of one request.

    Args:
        block_table: list of physical block ids in logical order.
        block_size: B, slots a block.
        position: the token's number, counted from 0.

    Returns:
        (block, offset): physical block id, and slot inside it (0 to B - 1).

    Raises:
        IndexError: the position is negative, or past the last slot that the table covers.

    Worked line: table [7, 1], B = 4, position 6 -> (1, 2).
    """
    ...  # about 4 lines
'''

SOLUTION = '''\
def translate(block_table, block_size, position):
    """The slot (block, offset) of token number `position`; IndexError outside the table."""
    logical_block, offset = divmod(position, block_size)
    if not 0 <= logical_block < len(block_table):
        raise IndexError(f"position {position} is outside a table of {len(block_table)} blocks")
    return block_table[logical_block], offset
'''

HINTS = (
    "Count in whole blocks first: how many full blocks of B slots lie before the position? That many entries "
    "of the"
    " table are behind you. What is left over is the offset.",
    "`divmod(position, block_size)` gives both numbers: the entry to look up in `block_table`, and the "
    "offset. Python"
    " accepts `block_table[-1]`, so a negative position needs a check of its own.",
)

_CASES = [([7, 1], 4, position) for position in (0, 3, 4, 6)]
_CASES += [([5, 2, 9], 4, position) for position in (0, 6, 11)]
_CASES += [([3, 0, 4], 2, position) for position in range(6)]
_CASES += [([6, 2, 8], 1, position) for position in range(3)] + [([2, 0], 16, 17), ([4], 3, 2)]
_OUTSIDE = [([7, 1], 4, 8), ([5, 2, 9], 4, 12), ([3], 16, 100), ([], 4, 0), ([7, 1], 4, -1), ([7, 1], 4, -8)]


def _given(table: list[int], block_size: int, position: int) -> str:
    return f"table {table}, B = {block_size}, position {position}"


def check(trial: Trial) -> str:
    for table, block_size, position in _CASES:
        logical_block, offset = divmod(position, block_size)
        because = (
            f"{position} // {block_size} = {logical_block} picks entry {logical_block} of the table, block "
            f"{table[logical_block]}, and {position} % {block_size} = {offset} is the slot in it"
        )
        given = _given(table, block_size, position)
        expected = (table[logical_block], offset)
        trial.gives(list(table), block_size, position, expected=expected, given=given, because=because)
    for table, block_size, position in _OUTSIDE:
        slots = len(table) * block_size
        because = (
            "a negative position is no token, though Python's lists accept it"
            if position < 0
            else f"{len(table)} blocks cover {slots} slots, and what comes next belongs to somebody else"
        )
        given = _given(table, block_size, position)
        trial.raises(IndexError, list(table), block_size, position, given=given, because=because)
    return "Every position lands in its slot, and those outside are refused."


exercise = Exercise(
    id="03.translate",
    title="Translate one position",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "logical block for physical",
            edited(SOLUTION, "return block_table[logical_block], offset", "return logical_block, offset"),
            says="picks entry 0 of the table, block 7, and 0 % 4 = 0 is the slot in it; got (0, 0)",
        ),
        WrongAnswer(
            "remainder picks the block",
            edited(SOLUTION, "divmod(position, block_size)", "position % block_size, position // block_size"),
            says="position 3",
        ),
        WrongAnswer(
            "one too far before dividing",
            edited(SOLUTION, "divmod(position, block_size)", "divmod(position + 1, block_size)"),
            says="position 0: expected (7, 0)",
        ),
        WrongAnswer(
            "true division",
            edited(
                SOLUTION,
                "divmod(position, block_size)",
                "int(position / block_size), position / block_size % 1 * block_size",
            ),
            says="got (7, 0.0)",
        ),
        WrongAnswer(
            "negative positions count from the end",
            edited(
                SOLUTION, "not 0 <= logical_block < len(block_table)", "logical_block >= len(block_table)"
            ),
            says="position -1: expected an IndexError, because a negative position is no token",
        ),
        WrongAnswer(
            "the neighbour's block past the end",
            edited(
                SOLUTION,
                'raise IndexError(f"position {position} is outside a table of {len(block_table)} blocks")',
                "return (block_table + [0])[-1], offset",
            ),
            says="position 8: expected an IndexError, because 2 blocks cover 8 slots",
        ),
        WrongAnswer(
            "None past the end",
            edited(
                SOLUTION,
                'raise IndexError(f"position {position} is outside a table of {len(block_table)} blocks")',
                "return None",
            ),
            says="nothing was raised",
        ),
        WrongAnswer(
            "print instead of return",
            edited(
                SOLUTION, "return block_table[logical_block], offset", "(block_table[logical_block], offset)"
            ),
            says="is the `return` missing?",
        ),
        WrongAnswer(
            "takes the table apart",
            edited(
                SOLUTION,
                "return block_table[logical_block], offset",
                "for _ in range(logical_block):\n        block_table.pop(0)\n    return block_table[0], "
                "offset",
            ),
            says="changed its argument number 1",
        ),
        WrongAnswer(
            "a loop that never ends",
            "def translate(block_table, block_size, position):\n    while position >= 0:\n        position "
            "+= 1\n",
            says="a loop that never ends?",
        ),
    ],
)
