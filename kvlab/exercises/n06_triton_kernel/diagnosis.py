"""06.diagnosis: name the fault of four kernels from their symptoms."""

from kvlab.exercises.exercise import Exercise, Refused, Untouched, WrongAnswer, edited
from kvlab.exercises.n06_triton_kernel.patients import FAULTS
from kvlab.exercises.trial import Trial, show

STUB = """\
# One each of: "int32 offset", "missing mask", "no rescaling", "wrong block size"
diagnosis = {
    "A": ...,
    "B": ...,
    "C": ...,
    "D": ...,
}
"""

SOLUTION = """\
diagnosis = {
    "A": "missing mask",  # right until an unused slot holds NaN
    "B": "wrong block size",  # right as long as blocks have 8 slots
    "C": "int32 offset",  # right until a block begins past 2 ** 31
    "D": "no rescaling",  # right as long as there is one tile of 16
}
"""

HINTS = (
    "Look for what the batches that fail have in common, and what those that pass do not: a number of "
    "tiles, a block size, a distance, a leftover.",
    "The tile has 16 positions: 40 and 48 tokens are three tiles, the rest one. One batch has blocks of 16, "
    "one blocks of 2, and in one an address passes 2 ** 31.",
)

_WHY = {
    "A": "it is right until unused slots hold NaN",
    "B": "it is right where blocks have 8 slots, however long the sequence",
    "C": "it is right until a block begins past 2 ** 31",
    "D": "it is right while one tile of 16 holds all tokens, whatever the block size",
}


def check(trial: Trial) -> str:
    answer, names = trial.answer, sorted(fault for fault, *_ in FAULTS.values())
    if not isinstance(answer, dict) or answer.keys() != FAULTS.keys():
        raise Refused(f"keep the four lines of `diagnosis` and fill in their values: {', '.join(FAULTS)}.")
    still_open = [patient for patient in FAULTS if answer[patient] is None or answer[patient] is Ellipsis]
    if len(still_open) == len(FAULTS):
        raise Untouched("examine the patients and fill in `diagnosis`.")
    for patient, (fault, *_) in FAULTS.items():
        if patient in still_open:
            continue
        if answer[patient] not in names:
            raise Refused(f"patient {patient}: {show(answer[patient])} is not one of {', '.join(names)}.")
        if answer[patient] != fault:
            raise Refused(
                f"patient {patient}: it is not {answer[patient]}, because {_WHY[patient]}; look again."
            )
    if still_open:
        raise Untouched(f"right so far; still open: {', '.join(still_open)}.")
    return "Each of the four passes most tests: that is why they reach production."


exercise = Exercise(
    id="06.diagnosis",
    title="Four kernels, one bug each",
    kind="value",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "mask and rescaling exchanged",
            edited(SOLUTION, '"A": "missing mask"', '"A": "no rescaling"'),
            says="patient A: it is not no rescaling, because it is right until unused slots hold NaN",
        ),
        WrongAnswer(
            "a long sequence taken for a far one",
            edited(SOLUTION, '"D": "no rescaling"', '"D": "int32 offset"'),
            says="patient D: it is not int32 offset, because it is right while one tile",
        ),
        WrongAnswer(
            "block size taken for overflow",
            edited(SOLUTION, '"B": "wrong block size"', '"B": "int32 offset"'),
            says="patient B: it is not int32 offset",
        ),
        WrongAnswer(
            "overflow taken for a mask",
            edited(SOLUTION, '"C": "int32 offset"', '"C": "missing mask"'),
            says="patient C: it is not missing mask, because it is right until a block begins past",
        ),
        WrongAnswer(
            "a diagnosis of its own",
            edited(SOLUTION, '"C": "int32 offset"', '"C": "cosmic rays"'),
            says="'cosmic rays' is not one of int32 offset, missing mask",
        ),
    ],
)
