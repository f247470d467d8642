"""10.least_time: the roofline as a function."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.mistaken import gives
from kvlab.exercises.trial import Trial

STUB = '''\
def least_time(num_bytes, operations, bytes_per_s, operations_per_s):
    """The least seconds that a step can take on a machine, and what keeps it from being faster.

    Memory and arithmetic work at the same time, so the slower of the two decides.

    Args:
        num_bytes, operations: what the step has to move and to compute.
        bytes_per_s, operations_per_s: what the machine can move and compute in a second.

    Returns:
        (seconds, "memory" or "arithmetic"); "memory" when both take equally long.

    Worked line: 100 bytes at 50 a second, 300 operations at 100 a second -> (3.0, "arithmetic").
    """
    ...  # about 4 lines
'''

SOLUTION = '''\
def least_time(num_bytes, operations, bytes_per_s, operations_per_s):
    """(seconds, limit): the slower of moving the bytes and doing the arithmetic."""
    moving = num_bytes / bytes_per_s
    computing = operations / operations_per_s
    return (moving, "memory") if moving >= computing else (computing, "arithmetic")
'''

HINTS = (
    "Work out two times, one as if arithmetic were free, one as if memory were free.",
    "While the next bytes arrive, the processor computes on the ones before. So the times overlap: take the "
    "larger, do not add them.",
)

_CASES = [(100, 300, 50, 100), (100, 300, 10, 100), (64, 64, 8, 8), (1024, 4096, 64, 4096), (8, 512, 8, 4)]


def check(trial: Trial) -> str:
    for num_bytes, operations, bandwidth, peak in _CASES:
        moving, computing = num_bytes / bandwidth, operations / peak
        limit = "memory" if moving >= computing else "arithmetic"
        seconds = max(moving, computing)
        gives(
            trial,
            num_bytes,
            operations,
            bandwidth,
            peak,
            expected=(seconds, limit),
            given=f"{num_bytes} bytes at {bandwidth} a second, {operations} operations at {peak} a second",
            because=f"moving takes {moving} s and computing {computing} s, at the same time",
            mistakes={
                "the two overlap, so their times do not add up": (moving + computing, limit),
                "the faster one has to wait for the slower": (min(moving, computing), limit),
                "the limit is what takes longer": (
                    seconds,
                    "arithmetic" if limit == "memory" else "memory",
                ),
                "that is bytes times bandwidth; seconds are bytes divided by it": (
                    max(num_bytes * bandwidth, operations * peak),
                    "memory" if num_bytes * bandwidth >= operations * peak else "arithmetic",
                ),
            },
        )
    return "Bytes over bandwidth and operations over peak, and the larger of the two: that is the roofline."


exercise = Exercise(
    id="10.least_time",
    title="The least time of a step",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "adds them",
            edited(
                SOLUTION,
                'return (moving, "memory") if',
                'total = moving + computing\n    return (total, "memory") if',
            ).replace('(computing, "arithmetic")', '(total, "arithmetic")'),
            says="their times do not add up",
        ),
        WrongAnswer(
            "the smaller",
            edited(SOLUTION, "moving >= computing", "moving <= computing")
            .replace('(moving, "memory")', '(moving, "arithmetic")')
            .replace('(computing, "arithmetic")', '(computing, "memory")'),
            says="has to wait for the slower",
        ),
        WrongAnswer(
            "names swapped",
            edited(SOLUTION, '(moving, "memory")', '(moving, "arithmetic")').replace(
                '(computing, "arithmetic")', '(computing, "memory")'
            ),
            says="the limit is what takes longer",
        ),
        WrongAnswer(
            "times for divided by",
            edited(SOLUTION, "num_bytes / ", "num_bytes * ").replace("operations / ", "operations * "),
            says="seconds are bytes divided by it",
        ),
        WrongAnswer("equal", edited(SOLUTION, ">=", ">"), says="(8.0, 'memory')"),
    ],
)
