"""05.one_head: attention of one query over one head, with nothing paged yet."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.n05_paged_attention.numbers import exact, expect_close, random
from kvlab.exercises.trial import Trial

STUB = '''\
def one_head(q, k, v):
    """Attention of the newest token's query over all tokens, for one head.

    Args:
        q: [D], the query.  k, v: [T, D], keys and values in token order; T is at least 1.

    Returns:
        [D]: the sum over t of softmax(s)_t * v_t, where s_t = (q . k_t) / sqrt(D).
        Scores may reach 1000, and exp(1000) is infinite: take the largest score off first.

    Worked line: if all keys are equal, the result is the mean of the values.
    """
    ...  # about 4 lines of torch
'''

SOLUTION = '''\
def one_head(q, k, v):
    """softmax(q k^T / sqrt(D)) v for one query [D]."""
    scores = k @ q / math.sqrt(q.shape[0])  # [T]
    weights = torch.exp(scores - scores.max())  # [T]
    return weights @ v / weights.sum()  # [D]
'''

HINTS = (
    "`k @ q` multiplies every key with the query at once: T numbers. Divide them by `math.sqrt(q.shape[0])`.",
    "`torch.exp(scores - scores.max())` are weights that add up to something. Divide by that sum, before or "
    "after you multiply with `v`.",
)


def check(trial: Trial) -> str:
    import torch

    q, v = random(4, seed=1), random(3, 4, seed=2)
    cases = [
        ("three equal keys", q, q.expand(3, 4).clone(), v, "equal weights give the mean of the values"),
        ("one token", q, random(1, 4, seed=3), v[:1], "a single token has weight 1, so its value comes back"),
        (
            "q = [2, 0, 0, 0], keys [1, 0, 0, 0] and [0, 1, 0, 0]",
            torch.tensor([2.0, 0, 0, 0]),
            torch.eye(4)[:2],
            torch.eye(4)[:2],
            "the scores are 2 / sqrt(4) = 1 and 0, so the weights are 0.731 and 0.269",
        ),
        (
            "9 tokens of D = 4",
            q,
            random(9, 4, seed=4),
            random(9, 4, seed=5),
            "every token counts, the last too",
        ),
        (
            "scores up to 1000",
            q,
            random(5, 4, seed=6, factor=800.0),
            random(5, 4, seed=7),
            "with the largest score taken off every exponent is at most 0",
        ),
    ]
    for given, q, k, v, because in cases:
        expect_close(trial.call(q, k, v, given=given), exact(q, k, v), given=given, because=because)
    return "The whole of attention, for one head: scores, weights, a weighted mean."


exercise = Exercise(
    id="05.one_head",
    title="One head, nothing paged",
    setup="import math\n\nimport torch",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "not scaled",
            edited(SOLUTION, " / math.sqrt(q.shape[0])", ""),
            says="the scores are 2 / sqrt(4) = 1 and 0",
        ),
        WrongAnswer(
            "divided by D",
            edited(SOLUTION, "math.sqrt(q.shape[0])", "q.shape[0]"),
            says="the weights are 0.731 and 0.269; got [0.622, 0.378",
        ),
        WrongAnswer(
            "exp of the bare scores",
            edited(SOLUTION, "scores - scores.max()", "scores"),
            says="every exponent is at most 0; got [nan",
        ),
        WrongAnswer(
            "not divided by the sum",
            edited(SOLUTION, " / weights.sum()", ""),
            says="three equal keys: expected",
        ),
        WrongAnswer(
            "mixes the keys instead of the values",
            edited(SOLUTION, "weights @ v", "weights @ k"),
            says="equal weights give the mean of the values",
        ),
        WrongAnswer(
            "leaves the newest token out",
            edited(SOLUTION, "weights = torch", "scores, v = scores[:-1], v[:-1]\n    weights = torch"),
            says="three equal keys: expected",
        ),
        WrongAnswer(
            "weights over the wrong axis",
            "def one_head(q, k, v):\n"
            "    return torch.softmax(k * q / math.sqrt(4), dim=0).mean(0) * v.sum(0)\n",
            says="the scores are 2 / sqrt(4) = 1 and 0",
        ),
        WrongAnswer("returns the weights", edited(SOLUTION, "weights @ v", "weights"), says="got shape [3]"),
    ],
)
