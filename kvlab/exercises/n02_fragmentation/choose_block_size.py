"""02.choose_block_size: the largest block size that a length distribution can afford."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.mistaken import gives
from kvlab.exercises.trial import Trial

STUB = '''\
def choose_block_size(lengths, sizes, most_waste):
    """The largest block size at which not too much of the held memory is empty.

    Args:
        lengths: tokens of each request, a list.
        sizes: block sizes to choose from, in rising order.
        most_waste: the largest share of all HELD slots that may be empty, 0 to 1.

    Returns:
        int: the largest of `sizes` whose share is at most `most_waste`; None when there is none.

    Worked line: lengths [30, 3], sizes [1, 2, 4, 16], 0.13 -> 4: at 4 they hold 36 slots, 3 empty.
    """
    ...  # about 6 lines
'''

SOLUTION = '''\
def choose_block_size(lengths, sizes, most_waste):
    """The largest of `sizes` at which at most this share of the held slots is empty; None if none is."""
    chosen = None
    for size in sizes:
        held = sum(-(-length // size) * size for length in lengths)
        if (held - sum(lengths)) / held <= most_waste:
            chosen = size
    return chosen
'''

HINTS = (
    "For one block size: add up the slots that all requests hold, and the tokens in them. Only then divide. "
    "A "
    "request of 10,000 tokens counts for more than one of 10.",
    "Go through all sizes and remember the last one that is good enough. The share need not rise with the "
    "size: lengths of 96 waste more at 64 than at 96. So do not stop at the first that fails.",
)

_CASES = [
    ([30, 3], [1, 2, 4, 16], 0.13),
    ([10, 3], [1, 2, 4, 16], 0.2),
    ([10, 3], [4, 16], 0.05),
    ([1, 1000], [1, 8, 16, 32], 0.04),
    ([96, 96, 96], [8, 16, 32, 64, 96, 128], 0.1),
    ([100] * 8, [1, 8, 16, 32], 0.05),
    ([4, 4], [4, 8], 0.5),
]


def check(trial: Trial) -> str:
    for lengths, sizes, most in _CASES:
        held = {size: sum(-(-length // size) * size for length in lengths) for size in sizes}
        share = {size: 1 - sum(lengths) / slots for size, slots in held.items()}
        good = [size for size in sizes if (held[size] - sum(lengths)) / held[size] <= most]
        single = {size: sum(-n % size / (n + -n % size) for n in lengths) / len(lengths) for size in sizes}
        of_tokens = [size for size in sizes if held[size] / sum(lengths) - 1 <= most]
        until = next((i for i, size in enumerate(sizes) if size not in good), len(sizes))
        gives(
            trial,
            list(lengths),
            list(sizes),
            most,
            expected=good[-1] if good else None,
            given=f"lengths {lengths}, sizes {sizes}, at most {most:.0%}",
            because="of the held slots are empty "
            + ", ".join(f"{part:.1%} at {size}" for size, part in share.items()),
            mistakes={
                "a share of exactly the most that is allowed is still good": max(
                    (size for size in good if share[size] < most), default=None
                ),
                "that is the smallest good one": good[0] if good else None,
                "that divides by the tokens, not by the slots held": of_tokens[-1] if of_tokens else None,
                "that averages shares, so a short request counts as much as a long one": max(
                    (size for size in sizes if single[size] <= most), default=None
                ),
                "a larger size later in the list is good again": sizes[until - 1] if until else None,
                "none of them is good enough, so None": sizes[0],
            },
        )
    return "Long texts can have large blocks. Short ones pay for them."


exercise = Exercise(
    id="02.choose_block_size",
    title="Which block size",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "the smallest",
            edited(SOLUTION, "            chosen = size", "            return size"),
            says="got 1: that is the smallest good one",
        ),
        WrongAnswer(
            "averages the shares",
            edited(
                SOLUTION,
                "(held - sum(lengths)) / held <=",
                "sum(-n % size / (n + -n % size) for n in lengths) / len(lengths) <=",
            ),
            says="averages shares",
        ),
        WrongAnswer(
            "stops at the first that fails",
            edited(
                SOLUTION,
                "            chosen = size",
                "            chosen = size\n        else:\n            break",
            ),
            says="a larger size later in the list is good again",
        ),
        WrongAnswer(
            "shares of tokens",
            edited(SOLUTION, "/ held <=", "/ sum(lengths) <="),
            says="divides by the tokens",
        ),
        WrongAnswer(
            "no None",
            edited(SOLUTION, "chosen = None", "chosen = sizes[0]"),
            says="none of them is good enough",
        ),
        WrongAnswer(
            "below, not at most",
            edited(SOLUTION, "<= most_waste", "< most_waste"),
            says="of exactly the most that is allowed is still good",
        ),
    ],
)
