"""06.load_tile: read a tile of K or V, and nothing else."""

import ast

from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.n06_triton_kernel.interpreted import close_to, probe_answer, text_of, told
from kvlab.exercises.trial import Trial

STUB = '''\
def load_tile(cache, offsets, dims, inside):
    """The vectors of a tile: [T, D], zeros for lanes that are not inside.

    Args:
        cache: pointer to K or V.  offsets: int64 [T], where each vector begins.
        dims: [D], 0, 1, ..., D - 1.  inside: bool [T].

    Lanes outside read nothing at all: their slots may hold NaN, their addresses may be anywhere.

    Worked line: offsets [8, 4, 0, 0], inside [True, True, False, False] -> rows 8.., 4.., zeros, zeros.
    """
    ...  # one line; x[:, None] turns [T] into a column, y[None, :] turns [D] into a row
'''

SOLUTION = '''\
def load_tile(cache, offsets, dims, inside):
    """A tile [T, D]; zeros for lanes outside, which read nothing."""
    return tl.load(cache + offsets[:, None] + dims[None, :], mask=inside[:, None], other=0.0)
'''

HINTS = (
    "A column of offsets plus a row of dims is a matrix of addresses: `cache + offsets[:, None] + dims[None, "
    ":]`.",
    "`tl.load` takes `mask=`, of a shape that fits the addresses, and `other=`, what the lanes outside get.",
)

_NAN = float("nan")
_NUMBERS = [float(i) for i in range(12)]
# (numbers of the cache, offsets of 4 lanes, how many are inside, why)
_CASES = [
    (_NUMBERS, [8, 4, 0, 10], 4, "each row starts at its own offset"),
    (_NUMBERS, [8, 4, 0, 0], 2, "lanes outside get zeros"),
    (
        [*_NUMBERS[:8], _NAN, _NAN, _NAN, _NAN],
        [4, 0, 2, 8],
        3,
        "lane 3 is outside, and NaN in it must not get in",
    ),
    (_NUMBERS, [2, 2**44, 2**44, 2**44], 1, "lanes outside read nothing, wherever they point"),
]


def check(trial: Trial) -> str:
    for case in _CASES:
        numbers, offsets, count, why = case
        given = f"offsets {offsets}, {count} of 4 lanes inside"
        got = probe_answer(trial, [case[:3]], given=given)[0]
        right = [numbers[at : at + 2] if lane < count else [0.0, 0.0] for lane, at in enumerate(offsets)]
        if not close_to(got, right):
            raise Refused(f"{given}: expected {told(right)}, because {why}; got {told(got)}.")
    for call in ast.walk(ast.parse(text_of([trial.answer]))):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "load":
            words = {keyword.arg for keyword in call.keywords}
            if "other" not in words and len(call.args) < 3:
                raise Refused(
                    "right in the interpreter, which gives 0 to lanes outside; compiled code gives them "
                    "whatever is in the register: expected `other=0.0`."
                )
    return "Masked at the load, so nothing has to be cleaned up later."


_LOAD = "tl.load(cache + offsets[:, None] + dims[None, :], mask=inside[:, None], other=0.0)"
_BARE = "tl.load(cache + offsets[:, None] + dims[None, :])"
exercise = Exercise(
    id="06.load_tile",
    title="Load a tile, masked",
    setup="from kvlab.exercises.n06_triton_kernel.language import tl",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer("no mask", edited(SOLUTION, _LOAD, _BARE), says="because lanes outside get zeros"),
        WrongAnswer(
            "multiplied by the mask",
            edited(SOLUTION, _LOAD, f"{_BARE} * tl.where(inside, 1.0, 0.0)[:, None]"),
            says="NaN in it must not get in",
        ),
        WrongAnswer(
            "cleaned up after the load",
            edited(SOLUTION, _LOAD, f"tl.where(inside[:, None], {_BARE}, 0.0)"),
            says="read memory that is not there",
        ),
        WrongAnswer(
            "no `other`", edited(SOLUTION, ", other=0.0", ""), says="compiled code gives them whatever is in"
        ),
        WrongAnswer(
            "minus infinity, as for scores",
            edited(SOLUTION, "other=0.0", 'other=-float("inf")'),
            says="expected [[8, 9], [4, 5], [0, 0], [0, 0]]",
        ),
        WrongAnswer(
            "rows side by side",
            edited(
                SOLUTION,
                "offsets[:, None] + dims[None, :]",
                "offsets[:, None] * 0 + tl.arange(0, 4)[:, None] * 2 + dims[None, :]",
            ),
            says="each row starts at its own offset",
        ),
        WrongAnswer(
            "mask along the wrong axis",
            edited(SOLUTION, "mask=inside[:, None]", "mask=inside[None, :]"),
            says="offsets [8, 4, 0, 10], 4 of 4 lanes inside: your `load_tile` raised",
        ),
    ],
)
