"""03.worked: three addresses and the waste of one table, by hand."""

from kvlab.exercises.exercise import Exercise, Refused, Untouched, WrongAnswer, edited
from kvlab.exercises.trial import Trial, same, show

TABLE, BLOCK_SIZE, LENGTH = [5, 2, 9], 4, 10

STUB = """\
worked = {  # table [5, 2, 9], B = 4
    "position 0": ...,  # (block, offset)
    "position 6": ...,
    "position 11": ...,
    "wasted at length 10": ...,  # slots of the last block that hold no token
}
"""

SOLUTION = """\
worked = {  # table [5, 2, 9], B = 4
    "position 0": (5, 0),  # 0 // 4 = 0, 0 % 4 = 0
    "position 6": (2, 2),  # 6 // 4 = 1, 6 % 4 = 2
    "position 11": (9, 3),  # 11 // 4 = 2, 11 % 4 = 3
    "wasted at length 10": 2,  # 3 blocks have 12 slots
}
"""

HINTS = (
    "Divide each position by 4. The whole part counts entries of the table from 0, the remainder counts "
    "slots from 0.",
    "Three blocks of 4 have 12 slots. Length 10 means that positions 0 to 9 are in use.",
)


def _expected() -> dict[str, tuple[object, str]]:
    """What each line should hold, and why."""
    due: dict[str, tuple[object, str]] = {}
    for position in (0, 6, 11):
        logical_block, offset = divmod(position, BLOCK_SIZE)
        due[f"position {position}"] = (
            (TABLE[logical_block], offset),
            f"{position} // {BLOCK_SIZE} = {logical_block} picks block {TABLE[logical_block]}, and "
            f"{position} % {BLOCK_SIZE} = {offset} is the slot",
        )
    slots = len(TABLE) * BLOCK_SIZE
    due[f"wasted at length {LENGTH}"] = (
        slots - LENGTH,
        f"{len(TABLE)} blocks of {BLOCK_SIZE} have {slots} slots, and {LENGTH} of them hold tokens",
    )
    return due


def check(trial: Trial) -> str:
    due = _expected()
    if not isinstance(trial.answer, dict) or trial.answer.keys() != due.keys():
        raise Refused(f"keep the four lines of `worked` and fill in their values: {', '.join(due)}.")
    open_lines = [line for line in due if trial.answer[line] is None or trial.answer[line] is Ellipsis]
    if len(open_lines) == len(due):
        raise Untouched("fill in the four lines of `worked`.")
    for line, (value, because) in due.items():
        if line not in open_lines and not same(trial.answer[line], value):
            raise Refused(
                f"table {TABLE}, B = {BLOCK_SIZE}, {line}: expected {show(value)}, because {because}; "
                f"got {show(trial.answer[line])}."
            )
    if open_lines:
        raise Untouched(f"right so far; still open: {', '.join(open_lines)}.")
    return "At most B - 1 slots of a request are ever empty, here at most 3."


exercise = Exercise(
    id="03.worked",
    title="Three addresses by hand",
    kind="value",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "counts slots from 1", edited(SOLUTION, "(2, 2)", "(2, 3)"), says="position 6: expected (2, 2)"
        ),
        WrongAnswer("logical block", edited(SOLUTION, "(9, 3)", "(2, 3)"), says="11 // 4 = 2 picks block 9"),
        WrongAnswer(
            "last position for length", edited(SOLUTION, ": 2,  # 3", ": 1,  # 3"), says="10 of them hold"
        ),
        WrongAnswer(
            "table entry 1 first", edited(SOLUTION, "(5, 0)", "(2, 0)"), says="position 0: expected (5, 0)"
        ),
    ],
)
