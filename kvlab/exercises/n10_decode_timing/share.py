"""10.share: how much of the limit's speed was reached, from times taken in turns on an unsteady machine."""

from statistics import mean, median

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.mistaken import gives
from kvlab.exercises.trial import Trial

STUB = '''\
def share(read_times, own_times):
    """How much of a plain read's speed a kernel reaches, on a machine whose speed changes all the time.

    Both moved the same bytes. In round i the read took read_times[i] seconds, and right after it the
    kernel took own_times[i]. Entry 0 of both is the warm-up: it compiles, and does not count.

    Args:
        read_times, own_times: lists of seconds, of one length, at least 2.

    Returns:
        float: the median over the rounds of the share within each round; 1.0 is as fast as the read.

    Worked line: read [9, 1, 2, 1], own [50, 2, 4, 4] -> shares 0.5, 0.5, 0.25 -> 0.5.
    """
    ...  # about 2 lines; statistics.median is imported as median
'''

SOLUTION = '''\
def share(read_times, own_times):
    """The median over the rounds, warm-up apart, of read time over own time."""
    rounds = list(zip(read_times, own_times))[1:]
    return median(read / own for read, own in rounds)
'''

HINTS = (
    "Same bytes, so twice the time is half the speed: the share in a round is the read's time over the "
    "kernel's own.",
    "Pair the rounds with `zip(read_times, own_times)`, drop the first pair, and take the median of the "
    "quotients. When a round was slow for both, its quotient does not notice.",
)

_CASES = [
    ([9, 1, 2, 1], [50, 2, 4, 4]),
    ([5, 1, 8, 2], [5, 4, 16, 16]),
    ([1, 2, 10, 3, 4, 6], [80, 4, 80, 6, 5, 8]),
    ([7, 3], [20, 4]),
]


def check(trial: Trial) -> str:
    for reads, owns in _CASES:
        pairs = list(zip(reads, owns, strict=True))
        within = [read / own for read, own in pairs[1:]]
        gives(
            trial,
            list(reads),
            list(owns),
            expected=median(within),
            given=f"read {reads}, own {owns}",
            because=f"the rounds after the warm-up have the shares {[round(one, 3) for one in within]}",
            mistakes={
                "that is the inverse; a slower kernel must have a smaller share": median(
                    own / read for read, own in pairs[1:]
                ),
                "that counts the warm-up": median(read / own for read, own in pairs),
                "that compares medians of different rounds, when the machine was not equally fast": (
                    median(reads[1:]) / median(owns[1:])
                ),
                "that is the mean, which one bad round can move anywhere": mean(within),
                "that is the best round, which luck decides": max(within),
            },
        )
    return "Within a round both met the same machine, so their quotient says something about the kernel."


exercise = Exercise(
    id="10.share",
    title="A fair share",
    setup="from statistics import mean, median",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "inverse", edited(SOLUTION, "read / own for", "own / read for"), says="that is the inverse"
        ),
        WrongAnswer("warm-up counts", edited(SOLUTION, "[1:]", ""), says="that counts the warm-up"),
        WrongAnswer(
            "quotient of medians",
            edited(
                SOLUTION,
                "median(read / own for read, own in rounds)",
                "median(read for read, own in rounds) / median(own for read, own in rounds)",
            ),
            says="medians of different rounds",
        ),
        WrongAnswer("mean", edited(SOLUTION, "return median(", "return mean("), says="that is the mean"),
        WrongAnswer("best round", edited(SOLUTION, "return median(", "return max("), says="the best round"),
    ],
)
