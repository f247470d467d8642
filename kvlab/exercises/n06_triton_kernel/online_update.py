"""06.online_update: fold one tile of scores into the running softmax."""

import math
from functools import cache

from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.n06_triton_kernel.interpreted import close_to, probe_answer, told
from kvlab.exercises.trial import Trial

STUB = '''\
def online_update(top, total, acc, scores, values):
    """The running softmax of a group of query heads after one more tile: merge of notebook 05.

    Args:
        top, total: float32 [G], the largest score and the sum of exp(score - top) so far; -inf and
            0 before the first tile.  acc: float32 [G, D], the sum of exp(score - top) * v so far.
        scores: [G, T], -inf for positions that do not count; one at least does.  values: [T, D].

    Returns:
        (top, total, acc) with this tile in them.

    Worked line: top 1, total 1, scores [3, 1] -> top 3, total exp(1 - 3) + 1 + exp(1 - 3) = 1.27.
    """
    # tl.maximum(a, b), tl.max(x, 1), tl.sum(x, 1), tl.exp(x), tl.dot(a, b, input_precision="ieee")
    ...  # about 5 lines
'''

SOLUTION = '''\
def online_update(top, total, acc, scores, values):
    """(top, total, acc) after one more tile."""
    new_top = tl.maximum(top, tl.max(scores, 1))  # [G]
    weights = tl.exp(scores - new_top[:, None])  # [G, T]
    rescale = tl.exp(top - new_top)  # [G]
    total = total * rescale + tl.sum(weights, 1)  # [G]
    acc = acc * rescale[:, None] + tl.dot(weights, values, input_precision="ieee")  # [G, D]
    return new_top, total, acc
'''

HINTS = (
    "The new maximum of each head comes first: the larger of `top` and of the tile's own, `tl.max(scores, "
    "1)`. Everything else is counted from it.",
    "What was there shrinks by `tl.exp(top - new_top)`, both `total` and every row of `acc`. The tile adds "
    "its weights, and its weights times its values: `tl.dot(weights, values)` is [G, D].",
)

_INF = float("-inf")
_VALUES = [[1.0, 0.0], [0.0, 1.0], [2.0, 2.0], [-1.0, 3.0]]
# (name, scores [tiles, G, T], why)
_CASES = [
    ("the first tile", [[[1.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]]], "nothing was there before"),
    (
        "a larger score in the second tile",
        [[[1.0, 0.0, 1.0, 0.0], [2.0, 1.0, 0.0, 0.0]], [[3.0, 1.0, 0.0, 0.0], [5.0, 0.0, 0.0, 0.0]]],
        "what was there shrinks by exp(old top - new top)",
    ),
    (
        "no larger score in the second tile",
        [[[4.0, 0.0, 1.0, 0.0], [2.0, 1.0, 3.0, 0.0]], [[1.0, 1.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]]],
        "the top stays, and the tile's weights are counted from it",
    ),
    (
        "two positions that do not count",
        [[[1.0, 2.0, _INF, _INF], [0.0, 1.0, _INF, _INF]]],
        "exp(-inf) is 0",
    ),
    (
        "scores around 500",
        [[[500.0, 501.0, 499.0, 500.0], [-500.0, -501.0, -500.0, -502.0]]],
        "exponents are taken against the top",
    ),
]


def _right(scores: list) -> list:
    """(top, total, acc) in Python's floats; tile i has the values shifted by i."""
    heads = range(len(scores[0]))
    flat = [[score for tile in scores for score in tile[head]] for head in heads]
    values = [row for tile in _tiles(len(scores)) for row in tile]
    top = [max(row) for row in flat]
    weights = [[math.exp(score - top[head]) for score in flat[head]] for head in heads]
    acc = [
        [sum(w * row[d] for w, row in zip(weights[head], values, strict=True)) for d in range(2)]
        for head in heads
    ]
    return [top, [sum(row) for row in weights], acc]


@cache
def _tiles(count: int) -> list:
    return [[[number + tile for number in row] for row in _VALUES] for tile in range(count)]


def check(trial: Trial) -> str:
    cases = [(scores, _tiles(len(scores))) for _, scores, _ in _CASES]
    for (name, scores, why), got in zip(_CASES, probe_answer(trial, cases), strict=True):
        for what, mine, right in zip(("top", "total", "acc"), got, _right(scores), strict=True):
            if not close_to(mine, right):
                raise Refused(
                    f"{name}, scores {told(scores)}: expected {what} {told(right)}, because {why}; "
                    f"got {told(mine)}."
                )
    return "One pass over K and V, and no score is kept."


exercise = Exercise(
    id="06.online_update",
    title="Fold a tile into the softmax",
    setup="from kvlab.exercises.n06_triton_kernel.language import tl",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "acc not rescaled",
            edited(SOLUTION, "acc * rescale[:, None]", "acc"),
            says="a larger score in the second tile, scores [[[1, 0, 1, 0], [2, 1, 0, 0]]",
        ),
        WrongAnswer(
            "total not rescaled",
            edited(SOLUTION, "total * rescale", "total"),
            says="expected total [1.61, 1.1",
        ),
        WrongAnswer(
            "the tile's own top",
            edited(SOLUTION, "tl.maximum(top, tl.max(scores, 1))", "tl.max(scores, 1)"),
            says="no larger score in the second tile",
        ),
        WrongAnswer(
            "weights against the old top",
            edited(SOLUTION, "scores - new_top[:, None]", "scores - top[:, None]"),
            says="the first tile",
        ),
        WrongAnswer(
            "the factor upside down",
            edited(SOLUTION, "tl.exp(top - new_top)", "tl.exp(new_top - top)"),
            says="because nothing was there before; got",
        ),
        WrongAnswer(
            "no maximum at all",
            edited(SOLUTION, "scores - new_top[:, None]", "scores")
            .replace("tl.exp(top - new_top)", "1.0 + 0.0 * total")
            .replace("rescale[:, None]", "1.0"),
            says="expected total",
        ),
        WrongAnswer(
            "keeps the old top",
            edited(SOLUTION, "return new_top,", "return top,"),
            says="expected top [2, 0], because nothing was there before; got [-inf, -inf]",
        ),
        WrongAnswer(
            "sums over the heads",
            edited(SOLUTION, "tl.sum(weights, 1)", "tl.sum(weights, 0)"),
            says="your `online_update` raised",
        ),
    ],
)
