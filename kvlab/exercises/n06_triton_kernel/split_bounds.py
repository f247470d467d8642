"""06.split_bounds: which positions one program walks."""

import math

from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.n06_triton_kernel.interpreted import probe_answer
from kvlab.exercises.trial import Trial

STUB = '''\
def split_bounds(length, split, num_splits, TILE):
    """The positions begin, ..., end - 1 that split number `split` walks.

    The walk has ceil(length / TILE) tiles. Each split gets ceil(tiles / num_splits) whole tiles, in
    order, so the last splits may have fewer, or none: then begin >= end, and their loop does not run.

    Args:
        length, split, num_splits: scalars of the kernel.  TILE: positions a tile, a constant.

    Returns:
        (begin, end), with end never past the length.

    Worked line: length 70, TILE 16, 2 splits -> 5 tiles, 3 a split: (0, 48) and (48, 70).
    """
    ...  # about 3 lines; tl.cdiv(a, b) divides and rounds up
'''

SOLUTION = '''\
def split_bounds(length, split, num_splits, TILE):
    """(begin, end) of one split: whole tiles, shared out in order."""
    share = tl.cdiv(tl.cdiv(length, TILE), num_splits) * TILE
    begin = split * share
    return begin, tl.minimum(begin + share, length)
'''

HINTS = (
    "First how many tiles there are, `tl.cdiv(length, TILE)`, then how many of them a split gets, then how "
    "many positions that is.",
    "`begin = split * share`. The last split may reach past the length: `tl.minimum(begin + share, length)`.",
)

# (length, splits, tile)
_CASES = [(70, 2, 16), (64, 1, 16), (64, 2, 16), (33, 4, 16), (1, 2, 16), (0, 2, 16), (100, 3, 8)]


def _right(length: int, num_splits: int, tile: int) -> list[tuple[int, int]]:
    share = math.ceil(math.ceil(length / tile) / num_splits) * tile
    return [(i * share, min((i + 1) * share, length)) for i in range(num_splits)]


def check(trial: Trial) -> str:
    for case, got in zip(_CASES, probe_answer(trial, _CASES), strict=True):
        length, num_splits, tile = case
        tiles = math.ceil(length / tile)
        for split, (mine, right) in enumerate(zip(got, _right(*case), strict=True)):
            if mine[0] >= mine[1] and right[0] >= right[1]:
                continue
            if tuple(mine) != right:
                due = f"{right}" if right[0] < right[1] else "begin >= end"
                raise Refused(
                    f"length {length}, TILE {tile}, split {split} of {num_splits}: expected {due}, because "
                    f"{tiles} tiles are {math.ceil(tiles / num_splits)} a split; got {tuple(mine)}."
                )
    return "Every position is walked once, in whole tiles."


_SHARE = "tl.cdiv(tl.cdiv(length, TILE), num_splits) * TILE"
exercise = Exercise(
    id="06.split_bounds",
    title="Which positions a program walks",
    setup="from kvlab.exercises.n06_triton_kernel.language import tl",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "rounded down",
            edited(SOLUTION, "tl.cdiv(tl.cdiv(length, TILE), num_splits)", "(length // TILE // num_splits)"),
            says="split 0 of 2: expected (0, 48), because 5 tiles are 3 a split; got (0, 32)",
        ),
        WrongAnswer(
            "not in whole tiles",
            edited(SOLUTION, _SHARE, "tl.cdiv(length, num_splits)"),
            says="5 tiles are 3 a split; got (0, 35)",
        ),
        WrongAnswer(
            "past the length",
            edited(SOLUTION, "tl.minimum(begin + share, length)", "begin + share"),
            says="split 1 of 2: expected (48, 70), because 5 tiles are 3 a split; got (48, 96)",
        ),
        WrongAnswer(
            "everybody walks everything",
            edited(SOLUTION, "return begin, tl.minimum(begin + share, length)", "return 0, length"),
            says="got (0, 70)",
        ),
        WrongAnswer(
            "a length instead of an end",
            edited(SOLUTION, "tl.minimum(begin + share, length)", "tl.minimum(share, length)"),
            says="split 1 of 2: expected (48, 70)",
        ),
        WrongAnswer(
            "counts tiles, not positions",
            edited(SOLUTION, "num_splits) * TILE", "num_splits)"),
            says="got (0, 3)",
        ),
    ],
)
