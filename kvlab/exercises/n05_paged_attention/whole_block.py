"""05.whole_block: read all slots of a block, count only those that hold tokens."""

from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.n05_paged_attention.numbers import expect_close, random
from kvlab.exercises.trial import Trial, show

STUB = '''\
def whole_block(q, k_block, v_block, inside):
    """The partial result (m, l, w) of one block whose slots are all read, as a kernel does.

    Args:
        q: [D].  k_block, v_block: [B, D], all slots of one block.
        inside: bool [B], which slots hold tokens of this sequence; at least one does. The others
            hold what the last owner left, or NaN, or infinity: it must not reach the result.

    Returns:
        (m, l, w) over the slots inside, as in merge. A NaN inside the sequence is no leftover:
        it is passed on, so that somebody notices.

    Worked line: scores [1, 2, NaN, 9], inside [True, True, False, False] -> m = 2.
    """
    ...  # about 5 lines of torch, no loop over slots
'''

SOLUTION = '''\
def whole_block(q, k_block, v_block, inside):
    """The partial result (m, l, w) over the slots that are inside."""
    scores = k_block @ q / math.sqrt(q.shape[0])  # [B]
    scores = torch.where(inside, scores, -math.inf)  # [B]
    weights = torch.exp(scores - scores.max())  # [B]
    values = torch.where(inside[:, None], v_block, 0.0)  # [B, D]
    return scores.max(), weights.sum(), weights @ values
'''

HINTS = (
    "Give the slots outside the score -inf, so that their weight exp(-inf) is exactly 0. "
    "`torch.where(inside, scores, -math.inf)` replaces; multiplying would not get rid of a NaN.",
    "A weight of 0 is not enough for the values: 0 * NaN is NaN. Replace the values outside by 0 as well: "
    "`torch.where(inside[:, None], v_block, 0.0)`.",
)


def check(trial: Trial) -> str:
    import torch

    nan, inf = torch.nan, torch.inf
    # name, what lies in the slots outside, slots inside, whether K and V there hold it, why
    cases = [
        ("all slots inside", 0.0, [True] * 4, "KV", "nothing is masked"),
        ("zeros outside", 0.0, [True, True, False, False], "KV", "a score of 0 still has weight exp(0 - m)"),
        (
            "another request's tokens outside",
            30.0,
            [True, True, False, False],
            "KV",
            "they are somebody else's",
        ),
        ("NaN in K outside", nan, [True, True, True, False], "K", "slot 3 is not part of the sequence"),
        (
            "NaN in V outside",
            nan,
            [True, True, True, False],
            "V",
            "0 * NaN is NaN: a weight of 0 is not enough",
        ),
        ("infinity in V outside", inf, [True, True, True, False], "V", "0 * infinity is NaN"),
        ("NaN before the window", nan, [False, False, True, True], "KV", "slots 2 and 3 are inside"),
    ]
    for number, (name, leftover, inside, where, because) in enumerate(cases):
        q, mask = random(4, seed=number), torch.tensor(inside)
        k, v = random(2, 4, 4, seed=20 + number)  # [B, D] each
        for kind, block in (("K", k), ("V", v)):
            if kind in where:
                block[~mask] = leftover
        _expect(trial, q, k, v, mask, given=f"{name}, inside {inside}", because=because)
    v = random(4, 4, seed=31)
    v[1, 2] = nan
    mask = torch.tensor([True, True, False, False])
    because = "the NaN is the sequence's own; to hide it would hide a bug"
    _expect(
        trial,
        random(4, seed=30),
        random(4, 4, seed=32),
        v,
        mask,
        given="NaN in V inside, slot 1",
        because=because,
    )
    return "Replaced, not multiplied away: nothing of the leftovers gets through."


def _expect(trial: Trial, q, k, v, mask, *, given: str, because: str) -> None:
    import torch

    scores = k[mask].double() @ q.double() / 2  # [inside]
    weights = torch.exp(scores - scores.max())
    right = scores.max(), weights.sum(), weights @ v[mask].double()
    got = trial.call(given=given, function=lambda: trial.answer(q, k, v, mask))
    if not isinstance(got, tuple | list) or len(got) != 3:
        hint = " (is the `return` missing?)" if got is None else ""
        raise Refused(f"{given}: expected a tuple (m, l, w), got {show(got)}{hint}.")
    for name, mine, expected in zip("mlw", got, right, strict=True):
        expect_close(mine, expected, given=given, because=because, what=f"{name} =")


_MASK_SCORES = "    scores = torch.where(inside, scores, -math.inf)  # [B]\n"
_MASK_VALUES = "    values = torch.where(inside[:, None], v_block, 0.0)  # [B, D]\n"

exercise = Exercise(
    id="05.whole_block",
    title="Leftovers in unused slots",
    setup="import math\n\nimport torch",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "values not masked",
            edited(SOLUTION, _MASK_VALUES, "    values = v_block\n"),
            says="NaN in V outside, inside [True, True, True, False]: expected w =",
        ),
        WrongAnswer(
            "scores not masked",
            edited(SOLUTION, _MASK_SCORES, ""),
            says="a score of 0 still has weight exp(0 - m)",
        ),
        WrongAnswer(
            "scores set to 0",
            edited(SOLUTION, "torch.where(inside, scores, -math.inf)", "torch.where(inside, scores, 0.0)"),
            says="zeros outside, inside [True, True, False, False]",
        ),
        WrongAnswer(
            "scores multiplied by the mask",
            edited(
                SOLUTION,
                "    weights = torch.exp(scores - scores.max())",
                "    weights = inside * torch.exp(scores - scores.max())",
            ).replace(_MASK_SCORES, ""),
            says="because ",
        ),
        WrongAnswer(
            "every NaN becomes 0",
            edited(SOLUTION, _MASK_VALUES, "    values = torch.nan_to_num(v_block, 0.0, 0.0, 0.0)\n"),
            says="to hide it would hide a bug",
        ),
        WrongAnswer(
            "values multiplied by the mask",
            edited(SOLUTION, "torch.where(inside[:, None], v_block, 0.0)", "v_block * inside[:, None]"),
            says="0 * NaN is NaN",
        ),
        WrongAnswer(
            "counts from the left",
            edited(
                SOLUTION,
                "    scores = k_block",
                "    inside = torch.arange(len(inside)) < inside.sum()\n    scores = k_block",
            ),
            says="slots 2 and 3 are inside",
        ),
    ],
)
