"""11.alignment: the scheduler's step and the hash's step when groups have blocks of different sizes."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.mistaken import gives
from kvlab.exercises.trial import Trial

STUB = '''\
def alignment(sizes, override=None):
    """The two units of a model whose groups have blocks of different sizes.

    Args:
        sizes: tokens a block, one entry a group.
        override: tokens a hash that somebody asked for, or None.

    Returns:
        (scheduler_block, hash_block): the smallest number of tokens that is whole blocks in EVERY group,
        and the number of tokens a hash: the override, or else the largest that divides every size.

    Raises:
        ValueError: the override does not divide every size. The message names a size that it does not.

    Worked line: sizes [16, 24] -> (48, 8); with override 4 -> (48, 4); override 16 -> ValueError: 24.
    """
    ...  # about 5 lines; math has lcm and gcd
'''

SOLUTION = '''\
def alignment(sizes, override=None):
    """(scheduler block, hash block) in tokens."""
    from math import gcd, lcm

    unit = gcd(*sizes) if override is None else override
    wrong = [size for size in sizes if size % unit]
    if wrong:
        raise ValueError(f"a hash of {unit} tokens does not divide blocks of {wrong}")
    return lcm(*sizes), unit
'''

HINTS = (
    "A length that is whole blocks of 16 and whole blocks of 24: the least common multiple. A hash that both "
    "can be cut into: the greatest common divisor.",
    "`math.lcm(*sizes)` and `math.gcd(*sizes)`. With an override, look for sizes with `size % override != 0` "
    "before you return.",
)

_CASES = [
    ([16, 24], None),
    ([16], None),
    ([16, 32, 64], None),
    ([528, 16], None),
    ([16, 24], 4),
    ([12, 18], 3),
]
_REFUSED = [([16, 24], 16, 24), ([32, 16], 32, 16), ([16, 24], 5, 16), ([16], 48, 16)]


def check(trial: Trial) -> str:
    from math import gcd, lcm, prod

    for sizes, override in _CASES:
        unit = gcd(*sizes) if override is None else override
        gives(
            trial,
            list(sizes),
            override,
            expected=(lcm(*sizes), unit),
            given=f"sizes {sizes}, override {override}",
            because=f"{lcm(*sizes)} tokens are {' and '.join(str(lcm(*sizes) // s) for s in sizes)} whole "
            f"blocks, "
            f"and {unit} divides every size",
            mistakes={
                "the larger size is not whole blocks of the others": (max(sizes), unit),
                "the product works but is not the smallest": (prod(sizes), unit),
                "the smallest size does not divide the others": (lcm(*sizes), min(sizes)),
                "the override was not used": (lcm(*sizes), gcd(*sizes)),
                "the two have changed places": (unit, lcm(*sizes)),
            },
        )
    for sizes, override, bad in _REFUSED:
        given = f"sizes {sizes}, override {override}"
        because = f"{bad} tokens are no whole number of hashes of {override}"
        error = trial.raises(ValueError, list(sizes), override, given=given, because=because)
        if str(bad) not in str(error):
            trial.equal(str(error), f"a message that names {bad}", given=given, because=because)
    return "One odd group makes the steps long and the hashes short."


exercise = Exercise(
    id="11.alignment",
    title="LCM and GCD",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "the largest", edited(SOLUTION, "return lcm(*sizes)", "return max(sizes)"), says="the larger size"
        ),
        WrongAnswer(
            "the product",
            SOLUTION.replace("gcd, lcm", "gcd, prod").replace("lcm(*sizes)", "prod(sizes)"),
            says="not the smallest",
        ),
        WrongAnswer(
            "the smallest block as a hash",
            edited(edited(SOLUTION, "gcd(*sizes)", "min(sizes)"), "if wrong:", "if wrong and override:"),
            says="the smallest size does not divide the others",
        ),
        WrongAnswer(
            "any override goes",
            edited(SOLUTION, "if wrong:", "if False:"),
            says="24 tokens are no whole number of hashes of 16; got (48, 16)",
        ),
        WrongAnswer(
            "the override is lost",
            edited(SOLUTION, "return lcm(*sizes), unit", "return lcm(*sizes), gcd(*sizes)"),
            says="the override was not used",
        ),
        WrongAnswer(
            "names the override only",
            edited(SOLUTION, "does not divide blocks of {wrong}", "is no good"),
            says="a message that names 24",
        ),
        WrongAnswer(
            "the other way round",
            edited(SOLUTION, "return lcm(*sizes), unit", "return unit, lcm(*sizes)"),
            says="have changed places",
        ),
    ],
)
