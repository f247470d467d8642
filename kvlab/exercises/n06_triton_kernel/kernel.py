"""06.kernel: the five parts in the kernel, against attention in float64."""

from __future__ import annotations

from kvlab.exercises.exercise import Exercise, Refused, Untouched, WrongAnswer, edited
from kvlab.exercises.n06_triton_kernel import addresses, load_tile, online_update, reduce_splits, split_bounds
from kvlab.exercises.n06_triton_kernel.interpreted import KernelFailed, require_triton, run_probe, text_of
from kvlab.exercises.n06_triton_kernel.lesson_kernel import PARTS
from kvlab.exercises.sources import is_stub
from kvlab.exercises.trial import Trial, show

STUB = """\
# Your five functions from above, in the kernel that calls them.
kernel = [split_bounds, addresses, load_tile, online_update, reduce_splits]
"""

HINTS = (
    "The sentence names the sequences and the setting in which the result is off. One tile right and two "
    "wrong: look at `online_update`. One split right and two wrong: `split_bounds` or `reduce_splits`.",
    "If each part passed its own check, the list is what is left: all five, each once.",
)

TOLERANCE = 2e-5
# (what is tried, arguments)
_CASES = [
    ("one token", {"lengths": [1], "block_size": 16}),
    ("lengths 5 and 16, one tile", {"lengths": [5, 16], "block_size": 4}),
    ("lengths 37 and 48, three tiles", {"lengths": [37, 48], "block_size": 16}),
    ("blocks of 3", {"lengths": [20], "block_size": 3}),
    ("two KV heads, a group of 3", {"lengths": [9], "block_size": 4, "kv_heads": 2, "group": 3}),
    ("NaN in unused slots", {"lengths": [5], "block_size": 16, "poison": float("nan")}),
    ("2 splits of lengths 0, 1 and 37", {"lengths": [0, 1, 37], "block_size": 16, "num_splits": 2}),
    ("blocks 2 ** 30 numbers apart", {"lengths": [10], "block_size": 2, "apart": 2**30}),
]


def check(trial: Trial) -> str:
    answer = trial.answer
    if not isinstance(answer, list | tuple) or not all(callable(part) for part in answer):
        raise Refused(f"`kernel` is the list of your five functions, {', '.join(PARTS)}; got {show(answer)}.")
    open_parts = [part.__name__ for part in answer if is_stub(part)]
    if open_parts:
        raise Untouched(f"{', '.join(f'`{name}`' for name in open_parts)}: still open.")
    missing = [name for name in PARTS if name not in [getattr(part, "__name__", "") for part in answer]]
    if missing:
        raise Refused(f"the kernel calls {', '.join(missing)}, and the list has no function of that name.")
    require_triton()
    source = text_of(answer)
    for name, case in _CASES:
        try:
            error = run_probe(source, "kernel", [case])[0]
        except KernelFailed as failure:
            raise Refused(f"{name}: your kernel {failure}.") from None
        if not error <= TOLERANCE:
            off = "NaN is in the output" if error != error else f"got a difference of {error:.2g}"
            raise Refused(
                f"{name}: expected attention's output up to {TOLERANCE:g}, because the oracle computes it in "
                f"float64; {off}."
            )
    return "A paged decode kernel, equal to attention in float64."


def _with(part: str, old: str, new: str) -> str:
    """The exercise's source after one of the parts has been spoilt."""
    solutions = {
        "split_bounds": split_bounds,
        "addresses": addresses,
        "load_tile": load_tile,
        "online_update": online_update,
        "reduce_splits": reduce_splits,
    }
    return edited(solutions[part].SOLUTION, old, new) + "\n\n" + STUB


exercise = Exercise(
    id="06.kernel",
    title="The whole kernel",
    kind="value",
    setup="from kvlab.exercises.n06_triton_kernel.language import tl",
    stub=STUB,
    hints=HINTS,
    solution=STUB,
    check=check,
    needs=tuple(f"06.{part}" for part in PARTS),
    wrong=[
        WrongAnswer(
            "a part left out",
            "kernel = [split_bounds, addresses, load_tile, online_update]\n",
            says="the kernel calls reduce_splits, and the list has no function of that name",
        ),
        WrongAnswer(
            "a part that never rescales",
            _with("online_update", "acc * rescale[:, None]", "acc"),
            says="lengths 37 and 48, three tiles: expected attention's output",
        ),
        WrongAnswer(
            "a part without its mask",
            _with("load_tile", ", mask=inside[:, None], other=0.0", ""),
            says="NaN in unused slots: expected attention's output up to 2e-05, because the oracle computes "
            "it in float64; NaN is in the output",
        ),
        WrongAnswer(
            "every split walks everything",
            _with("split_bounds", "return begin, tl.minimum(begin + share, length)", "return begin, length"),
            says="2 splits of lengths 0, 1 and 37",
        ),
        WrongAnswer(
            "a part that counts blocks of 4",
            _with("addresses", "positions % BLOCK_SIZE", "positions % 4"),
            says="lengths 37 and 48, three tiles: expected attention's output",
        ),
        WrongAnswer(
            "called, not named", "kernel = [5]\n", says="`kernel` is the list of your five functions"
        ),
    ],
)
