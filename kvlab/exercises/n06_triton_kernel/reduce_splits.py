"""06.reduce_splits: the outputs of several programs become one."""

import math

from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.n06_triton_kernel.interpreted import close_to, probe_answer, told
from kvlab.exercises.trial import Trial

STUB = '''\
def reduce_splits(lse, parts):
    """The output of one query head from the outputs of its splits.

    Args:
        lse: float32 [SPLITS], log of the sum of exp(score) over each split's positions; -inf for a
            split without any.  parts: float32 [SPLITS, D], each split's own output; zeros if empty.

    Returns:
        [D]: the parts, weighted by exp(lse), divided by the sum of the weights. If all splits are
        empty, zeros. lse may be 500: take the largest off before exp.

    Worked line: lse [log 3, log 1] -> 3/4 of the first part and 1/4 of the second.
    """
    ...  # about 4 lines; tl.where(condition, a, b) picks
'''

SOLUTION = '''\
def reduce_splits(lse, parts):
    """The weighted mean [D] of the parts, with weights exp(lse)."""
    top = tl.max(lse, 0)
    weights = tl.exp(lse - tl.where(top == -float("inf"), 0.0, top))  # [SPLITS]
    total = tl.sum(weights, 0)
    return tl.sum(weights[:, None] * parts, 0) / tl.where(total == 0.0, 1.0, total)  # [D]
'''

HINTS = (
    "Each part is divided by its own sum already, and exp(lse) is that sum: multiplied with it the part is a "
    "plain sum again, and plain sums add up. `tl.sum(weights[:, None] * parts, 0)` is [D].",
    "If all are empty, top is -inf, -inf - -inf is NaN, and 0 / 0 is NaN. `tl.where` puts a harmless number "
    "in both places.",
)

_INF = float("-inf")
_PARTS = [[1.0, 0.0], [0.0, 1.0], [4.0, 4.0], [-2.0, 6.0]]
_EMPTY = [0.0, 0.0]
# (name, lse, parts, why)
_CASES = [
    ("lse [log 3, log 1]", [math.log(3), 0.0], _PARTS[:2], "the weights are 3 and 1"),
    ("one split", [2.0], _PARTS[2:3], "a single part comes back as it is"),
    ("four splits", [0.0, 1.0, 2.0, 0.5], _PARTS, "each part counts with exp(lse)"),
    ("an empty split", [1.0, _INF], [_PARTS[0], _EMPTY], "the empty split has the weight exp(-inf) = 0"),
    ("lse [500, 499]", [500.0, 499.0], _PARTS[:2], "exponents are taken against the largest"),
    ("both empty", [_INF, _INF], [_EMPTY, _EMPTY], "a sequence without tokens gives zeros"),
]


def _right(lse: list, parts: list) -> list[float]:
    top = max(lse)
    weights = [0.0 if one == _INF else math.exp(one - top) for one in lse]
    total = sum(weights) or 1.0
    return [sum(w * part[d] for w, part in zip(weights, parts, strict=True)) / total for d in range(2)]


def check(trial: Trial) -> str:
    cases = [(lse, parts) for _, lse, parts, _ in _CASES]
    for (name, lse, parts, why), got in zip(_CASES, probe_answer(trial, cases), strict=True):
        right = _right(lse, parts)
        if not close_to(got, right):
            raise Refused(
                f"{name}, parts {told(parts)}: expected {told(right)}, because {why}; got {told(got)}."
            )
    return "Splits may run anywhere, at any time: one number each is enough to put them together."


exercise = Exercise(
    id="06.reduce_splits",
    title="Put the splits together",
    setup="from kvlab.exercises.n06_triton_kernel.language import tl",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "the mean of the parts",
            edited(SOLUTION, 'tl.exp(lse - tl.where(top == -float("inf"), 0.0, top))', "tl.exp(lse * 0.0)"),
            says="lse [log 3, log 1], parts [[1, 0], [0, 1]]: expected [0.75, 0.25]",
        ),
        WrongAnswer(
            "added up, not averaged",
            edited(SOLUTION, " / tl.where(total == 0.0, 1.0, total)", ""),
            says="because the weights are 3 and 1; got [1, 0.333]",
        ),
        WrongAnswer(
            "weighted by lse itself",
            edited(SOLUTION, 'tl.exp(lse - tl.where(top == -float("inf"), 0.0, top))', "lse"),
            says="the weights are 3 and 1; got [1, 0]",
        ),
        WrongAnswer(
            "exp of the bare lse",
            edited(SOLUTION, 'lse - tl.where(top == -float("inf"), 0.0, top)', "lse"),
            says="lse [500, 499], parts [[1, 0], [0, 1]]: expected [0.731, 0.269]",
        ),
        WrongAnswer(
            "no care for all empty: the maximum",
            edited(SOLUTION, 'tl.where(top == -float("inf"), 0.0, top)', "top"),
            says="a sequence without tokens gives zeros; got [nan, nan]",
        ),
        WrongAnswer(
            "no care for all empty: the division",
            edited(SOLUTION, "tl.where(total == 0.0, 1.0, total)", "total"),
            says="a sequence without tokens gives zeros; got [nan, nan]",
        ),
        WrongAnswer(
            "only the best split",
            edited(
                SOLUTION,
                'weights = tl.exp(lse - tl.where(top == -float("inf"), 0.0, top))',
                "weights = tl.where(lse == top, 1.0, 0.0)",
            ),
            says="got [1, 0]",
        ),
    ],
)
