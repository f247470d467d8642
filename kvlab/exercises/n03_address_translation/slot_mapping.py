"""03.slot_mapping: the flat slots of a whole batch at once, padding included."""

import numpy as np

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.trial import Trial, plain

STUB = '''\
def slot_mapping(block_tables, positions, block_size):
    """Flat slots of a batch of tokens, computed on whole arrays.

    Args:
        block_tables: int array [S, max_blocks], one row a request, -1 past a row's end.
        positions: int array [S, T], positions of each request's tokens, -1 for padding.
        block_size: B, slots a block.

    Returns:
        int array [S, T] of block * B + offset; -1 where the position is padding.

    Raises:
        IndexError: a position past the blocks of its own row.

    Worked line: row [7, 1], B = 4, positions [0, 6, -1] -> [28, 6, -1].
    """
    ...  # about 6 lines of numpy, no loop
'''

SOLUTION = '''\
def slot_mapping(block_tables, positions, block_size):
    """Flat slots [S, T] of a batch: block * B + offset, -1 for padding."""
    padding = positions < 0  # [S, T]
    logical = np.where(padding, 0, positions // block_size)  # [S, T]
    if (logical >= block_tables.shape[1]).any():
        raise IndexError("a position lies past the end of the block tables")
    blocks = np.take_along_axis(block_tables, logical, axis=1)  # [S, T]
    if (blocks[~padding] < 0).any():
        raise IndexError("a position lies past the blocks of its own row")
    return np.where(padding, -1, blocks * block_size + positions % block_size)  # [S, T]
'''

HINTS = (
    "Each row looks up only its own row of the table. `np.take_along_axis(block_tables, logical, axis=1)` "
    "does that for"
    " all rows at once.",
    "-1 // 4 is -1 in Python and numpy, which would pick the last column. Put a harmless 0 there first"
    " (`np.where(padding, 0, ...)`), and write -1 over the result at the end.",
)

# (block tables, positions, B)
_CASES = [
    ([[7, 1]], [[0, 6, -1]], 4),
    ([[5, 2, 9]], [[0, 6, 11]], 4),
    ([[7, 1], [3, -1]], [[4, 5, 6], [0, 1, -1]], 4),
    ([[0, 4, 2], [5, 1, -1], [3, -1, -1]], [[5, 0, -1, -1], [3, 2, 1, 0], [1, -1, -1, -1]], 2),
    ([[6, 0], [1, -1]], [[1, 0], [0, -1]], 1),
    ([[2, 0], [1, 3]], [[31, 16, 15], [-1, -1, -1]], 16),
]
_OUTSIDE = [
    ([[7, 1], [3, 5]], [[0], [8]], 4, "the row has 2 blocks, 8 slots"),
    ([[7, 1], [3, -1]], [[0], [4]], 4, "request 1 has one block, and -1 in a row is no block"),
]


def _given(tables: list, positions: list, block_size: int) -> str:
    return f"block tables {tables}, B = {block_size}, positions {positions}"


def _one(table: list[int], position: int, block_size: int) -> int:
    return -1 if position < 0 else table[position // block_size] * block_size + position % block_size


def _why(tables: list, positions: list, block_size: int, expected: list, got: object) -> str:
    """One token of the batch worked out: the first that came back wrong, else the first."""
    tokens = [(row, column) for row in range(len(positions)) for column in range(len(positions[row]))]
    came = plain(got)
    try:
        row, column = next((r, c) for r, c in tokens if came[r][c] != expected[r][c])
    except (StopIteration, TypeError, IndexError, KeyError):
        row, column = tokens[0]
    position = positions[row][column]
    if position < 0:
        return "padding stays -1"
    block, offset = tables[row][position // block_size], position % block_size
    return (
        f"position {position} of request {row} is in block {block}, slot {offset}, "
        f"and {block} * {block_size} + {offset} = {block * block_size + offset}"
    )


def check(trial: Trial) -> str:
    for tables, positions, block_size in _CASES:
        expected = [
            [_one(table, position, block_size) for position in row]
            for table, row in zip(tables, positions, strict=True)
        ]
        arrays = np.array(tables, np.int32), np.array(positions, np.int64)  # [S, max_blocks], [S, T]
        given = _given(tables, positions, block_size)
        got = trial.call(*arrays, block_size, given=given)
        because = _why(tables, positions, block_size, expected, got)
        trial.equal(got, expected, given=given, because=because)
    for tables, positions, block_size, because in _OUTSIDE:
        arrays = np.array(tables, np.int32), np.array(positions, np.int64)  # [S, max_blocks], [S, T]
        trial.raises(
            IndexError, *arrays, block_size, given=_given(tables, positions, block_size), because=because
        )
    return "One array of slots for the whole batch, and no request reads past its own row."


_GUARD_ROW = """\
    if (blocks[~padding] < 0).any():
        raise IndexError("a position lies past the blocks of its own row")
"""

exercise = Exercise(
    id="03.slot_mapping",
    title="Slots of a whole batch",
    setup="import numpy as np",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "padding picks the last block",
            edited(
                SOLUTION,
                "np.where(padding, -1, blocks * block_size + positions % block_size)",
                "blocks * block_size + positions % block_size",
            ),
            says="because padding stays -1; got",
        ),
        WrongAnswer(
            "logical block times B",
            edited(SOLUTION, "blocks * block_size +", "logical * block_size +"),
            says="expected [[28, 6, -1]]",
        ),
        WrongAnswer(
            "block plus offset",
            edited(SOLUTION, "blocks * block_size +", "blocks +"),
            says="is in block 7, slot 0, and 7 * 4 + 0 = 28",
        ),
        WrongAnswer(
            "every token in the first row's blocks",
            edited(SOLUTION, "np.take_along_axis(block_tables, logical, axis=1)", "block_tables[0][logical]"),
            says="position 0 of request 1 is in block 3, slot 0",
        ),
        WrongAnswer(
            "no end of the row",
            edited(SOLUTION, _GUARD_ROW, ""),
            says="expected an IndexError, because request 1 has one block",
        ),
        WrongAnswer(
            "clipped to the table's width",
            edited(
                SOLUTION,
                'raise IndexError("a position lies past the end of the block tables")',
                "logical = np.minimum(logical, block_tables.shape[1] - 1)",
            ),
            says="expected an IndexError, because the row has 2 blocks",
        ),
        WrongAnswer(
            "writes into the positions",
            edited(
                SOLUTION,
                "    logical = np.where(padding, 0, positions // block_size)  # [S, T]\n",
                "    positions[padding] = 0\n    logical = positions // block_size\n",
            ),
            says="changed its argument number 2",
        ),
    ],
)
