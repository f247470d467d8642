"""11.divergence: the price of a coarser cache, as the distance between two distributions of the next "
"token."""

from math import log

from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.trial import Trial, show

STUB = '''\
def divergence(p, q):
    """The Kullback-Leibler divergence of q from p, in nats: sum of p * ln(p / q).

    Args:
        p: list of probabilities of each next token with the exact cache.
        q: the same with the coarser cache; positive wherever p is.

    Returns:
        float: 0 when both are equal, positive otherwise. A token with p = 0 adds nothing.

    Worked line: p [0.5, 0.5], q [0.25, 0.75] -> 0.1438.
    """
    ...  # about 3 lines; math has log
'''

SOLUTION = '''\
def divergence(p, q):
    """sum of p * ln(p / q), in nats."""
    from math import log

    return sum(a * log(a / b) for a, b in zip(p, q, strict=True) if a > 0)
'''

HINTS = (
    "Go through both lists together. How much more likely the exact model found a token, as a logarithm, "
    "counts as often as the exact model would have said it.",
    "`sum(a * log(a / b) for a, b in zip(p, q))`, and leave out what has a = 0: its logarithm does not "
    "exist, "
    "and its weight is nothing.",
)

_CASES = [
    ([0.5, 0.5], [0.25, 0.75]),
    ([0.2, 0.8], [0.2, 0.8]),
    ([0.0, 1.0], [0.1, 0.9]),
    ([0.7, 0.3], [0.1, 0.9]),
]


def _kl(p: list[float], q: list[float]) -> float:
    return sum(a * log(a / b) for a, b in zip(p, q, strict=True) if a)


def _mistakes(p: list[float], q: list[float]) -> dict[str, float]:
    pairs = list(zip(p, q, strict=True))
    return {
        "p and q have changed places": sum(b * log(b / a) for a, b in pairs) if all(p) else -1.0,
        "that is in bits; nats use the natural logarithm": _kl(p, q) / log(2),
        "the sign is the other way": -_kl(p, q),
        "each logarithm is weighted with p": sum(log(a / b) for a, b in pairs if a),
        "that is the sum of the differences": sum(abs(a - b) for a, b in pairs),
    }


def check(trial: Trial) -> str:
    for p, q in _CASES:
        given, expected = f"p {p}, q {q}", _kl(p, q)
        got = trial.call(list(p), list(q), given=given)
        because = "it is " + " + ".join(f"{a} * ln({a} / {b})" for a, b in zip(p, q, strict=True) if a)
        if isinstance(got, int | float) and abs(got - expected) < 1e-6:
            continue
        named = [
            f": {sentence}"
            for sentence, value in _mistakes(p, q).items()
            if isinstance(got, int | float) and abs(got - value) < 1e-6
        ]
        forgot = " (is the `return` missing?)" if got is None else ""
        raise Refused(
            f"{given}: expected {expected:.4f}, because {because}; got "
            f"{show(got)}{forgot}{''.join(named[:1])}."
        )
    return "0.1 nat: on its own text the exact model is about 10 % surer of each token."


exercise = Exercise(
    id="11.divergence",
    title="The price in nats",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "the other way round", edited(SOLUTION, "in zip(p, q", "in zip(q, p"), says="changed places"
        ),
        WrongAnswer("bits", SOLUTION.replace("log(a / b)", "log(a / b, 2)"), says="nats use the natural"),
        WrongAnswer("upside down", edited(SOLUTION, "log(a / b)", "log(b / a)"), says="the other way"),
        WrongAnswer("no weights", edited(SOLUTION, "a * log", "log"), says="is weighted with p"),
        WrongAnswer(
            "differences", edited(SOLUTION, "a * log(a / b)", "abs(a - b)"), says="sum of the differences"
        ),
        WrongAnswer(
            "fails at 0",
            edited(SOLUTION, " if a > 0", ""),
            says="p [0.0, 1.0], q [0.1, 0.9]: your `divergence`",
        ),
    ],
)
