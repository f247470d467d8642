"""05.merge: two partial results of one softmax become one."""

from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.n05_paged_attention.numbers import expect_close, random, told
from kvlab.exercises.trial import Trial, show

STUB = '''\
def merge(a, b):
    """Attention over two sets of tokens, from the partial results of each.

    A partial result is a tuple of tensors (m, l, w):
        m: [], the largest score seen;  l: [], the sum of exp(s - m);  w: [D], the sum of exp(s - m) * v.
    Nothing seen yet is (-inf, 0, zeros): merged with anything it changes nothing.

    Returns:
        (m, l, w) over the tokens of both. The output, if wanted, is w / l.

    Worked line: m = 2 and m = 3 -> m = 3; the first l and w shrink by exp(2 - 3), the second stay.
    """
    ...  # about 5 lines
'''

SOLUTION = '''\
def merge(a, b):
    """The partial result (m, l, w) over the tokens of both."""
    top = torch.maximum(a[0], b[0])  # []
    if top == -math.inf:
        return a
    from_a, from_b = torch.exp(a[0] - top), torch.exp(b[0] - top)  # [], []
    return top, a[1] * from_a + b[1] * from_b, a[2] * from_a + b[2] * from_b
'''

HINTS = (
    "Both sums have to be counted from the same maximum before they can be added: the larger of the two. "
    "`torch.maximum(a[0], b[0])` finds it.",
    "exp(s - old) * exp(old - new) = exp(s - new): so l and w of a part are multiplied by "
    "`torch.exp(m - top)` of that part. If both parts are empty, -inf - -inf is NaN: return one of them.",
)


def _partial(scores, values):
    import torch

    if not len(scores):
        return torch.tensor(-torch.inf), torch.tensor(0.0), torch.zeros(values.shape[-1])
    weights = torch.exp(scores - scores.max())
    return scores.max(), weights.sum(), weights @ values


def _told(part: tuple) -> str:
    return f"({', '.join(told(piece) for piece in part)})"


def check(trial: Trial) -> str:
    import torch

    values = random(6, 2, seed=1)
    cases = [
        ([1.0, 2.0], [3.0], "the larger m is 3, and exp(2 - 3) = 0.368 brings a to it"),
        ([3.0], [1.0, 2.0], "the larger m is 3, and exp(2 - 3) = 0.368 brings b to it"),
        ([1.0, 1.0], [1.0], "both have the same m, so the sums just add up"),
        ([], [0.5, 2.0], "nothing was seen before, so b comes back as it is"),
        ([0.5, 2.0], [], "b saw nothing, so a comes back as it is"),
        ([], [], "nothing and nothing is nothing; beware of -inf - -inf"),
        ([-1000.0], [-998.0, -1001.0], "exponents are taken against the larger m, -998, not against 0"),
        ([900.0], [800.0], "b weighs exp(-100), which is next to nothing"),
    ]
    for first, second, because in cases:
        one, other = torch.tensor(first), torch.tensor(second)
        a = _partial(one, values[: len(first)])
        b = _partial(other, values[len(first) : len(first) + len(second)])
        both = torch.cat([one, other]).double()  # [T]
        whole = _partial(both, values[: len(both)].double())
        given = f"a = {_told(a)}, b = {_told(b)}"
        got = trial.call(a, b, given=given)
        if not isinstance(got, tuple | list) or len(got) != 3:
            hint = " (is the `return` missing?)" if got is None else ""
            raise Refused(f"{given}: expected a tuple (m, l, w), got {show(got)}{hint}.")
        for name, mine, right in zip("mlw", got, whole, strict=True):
            expect_close(mine, right, given=given, because=because, what=f"{name} =")
    return "Parts may be cut anywhere and merged in any order: the result is the same."


exercise = Exercise(
    id="05.merge",
    title="Merge two partial results",
    setup="import math\n\nimport torch",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "adds without rescaling",
            edited(
                SOLUTION,
                "a[1] * from_a + b[1] * from_b, a[2] * from_a + b[2] * from_b",
                "a[1] + b[1], a[2] + b[2]",
            ),
            says="expected l = 1.5, because the larger m is 3, and exp(2 - 3) = 0.368 brings a to it",
        ),
        WrongAnswer(
            "rescales the sum, forgets w",
            edited(SOLUTION, "a[2] * from_a + b[2] * from_b", "a[2] + b[2]"),
            says="expected w = ",
        ),
        WrongAnswer(
            "takes the newer maximum for the larger",
            edited(SOLUTION, "torch.maximum(a[0], b[0])", "b[0]"),
            says="expected m = 3, because the larger m is 3, and exp(2 - 3) = 0.368 brings b to it",
        ),
        WrongAnswer(
            "rescales only what came before",
            edited(SOLUTION, "torch.exp(b[0] - top)", "1.0"),
            says="brings b to it",
        ),
        WrongAnswer(
            "the exponent upside down",
            edited(SOLUTION, "torch.exp(a[0] - top)", "torch.exp(top - a[0])"),
            says="brings a to it; got",
        ),
        WrongAnswer(
            "no care for nothing and nothing",
            edited(SOLUTION, "    if top == -math.inf:\n        return a\n", ""),
            says="beware of -inf - -inf; got nan",
        ),
        WrongAnswer(
            "multiplies out to the bare exponentials",
            edited(
                SOLUTION,
                "from_a, from_b = torch.exp(a[0] - top), torch.exp(b[0] - top)",
                "from_a, from_b = torch.exp(a[0]) / torch.exp(top), torch.exp(b[0]) / torch.exp(top)",
            ),
            says="not against 0",
        ),
        WrongAnswer(
            "returns the output",
            edited(
                SOLUTION,
                "return top, a[1] * from_a + b[1] * from_b, a[2] * from_a + b[2] * from_b",
                "return (a[2] * from_a + b[2] * from_b) / (a[1] * from_a + b[1] * from_b)",
            ),
            says="expected a tuple (m, l, w)",
        ),
    ],
)
