"""10.whole_step: Amdahl's law."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.mistaken import gives
from kvlab.exercises.trial import Trial

STUB = '''\
def whole_step(part_ms, step_ms, times):
    """How many milliseconds a whole step takes when one part of it runs `times` as fast.

    Args:
        part_ms: what the part takes now, in milliseconds.
        step_ms: what the whole step takes now, the part included.
        times: 2 means twice as fast; math.inf means that the part is gone.

    Returns:
        float: milliseconds of the whole step.

    Worked line: a part of 4 ms in a step of 20 ms, twice as fast -> 18.0.
    """
    ...  # about 1 line
'''

SOLUTION = '''\
def whole_step(part_ms, step_ms, times):
    """The rest of the step as it is, and the part at its new speed."""
    return step_ms - part_ms + part_ms / times
'''

HINTS = (
    "Split the step in two: the part, and the rest. Only one of them changes.",
    "The rest takes `step_ms - part_ms`, before and after. The part takes `part_ms / times`.",
)

_CASES = [(4, 20, 2), (8, 8, 4), (0, 16, 2), (6, 24, float("inf")), (2, 10, 0.5)]


def check(trial: Trial) -> str:
    for part, step, times in _CASES:
        gives(
            trial,
            part,
            step,
            times,
            expected=float(step - part + part / times),
            given=f"a part of {part} ms in a step of {step} ms, {times} times as fast",
            because=f"the other {step - part} ms stay, and the part takes {part / times} ms",
            mistakes={
                "that makes the whole step faster, not the part": float(step / times),
                "that drops the part altogether": float(step - part),
                "the part is in the step already": float(step + part / times),
                "that takes off what the part still needs": float(step - part / times),
            },
        )
    return "However fast the part becomes, the rest stays: that is Amdahl's law."


exercise = Exercise(
    id="10.whole_step",
    title="The whole step",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "the whole is faster",
            edited(SOLUTION, "step_ms - part_ms + part_ms / times", "step_ms / times"),
            says="that makes the whole step faster",
        ),
        WrongAnswer(
            "the part is gone",
            edited(SOLUTION, " + part_ms / times", " + 0.0"),
            says="that drops the part",
        ),
        WrongAnswer(
            "counted twice",
            edited(SOLUTION, "step_ms - part_ms + part", "step_ms + part"),
            says="the part is in the step already",
        ),
        WrongAnswer(
            "what is saved",
            edited(SOLUTION, "step_ms - part_ms + part_ms / times", "step_ms - part_ms / times"),
            says="that takes off what the part still needs",
        ),
    ],
)
