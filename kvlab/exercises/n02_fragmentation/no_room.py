"""02.no_room: make a contiguous memory refuse a request that it has enough free slots for."""

from __future__ import annotations

from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer
from kvlab.exercises.trial import Trial, show
from kvlab.grow_and_copy import GrowAndCopy
from kvlab.paged_allocator import PagedAllocator
from kvlab.slot_script import carry_out, largest_hole, parse

SLOTS, BLOCK = 16, 2

STUB = """\
no_room = ...  # a script such as "admit A 4; admit B 4; release A; admit C 8"
"""

SOLUTION = """\
no_room = "admit A 4; admit B 4; admit C 4; admit D 4; release A; release C; admit E 8"
"""

HINTS = (
    "Fill the memory with requests of equal size. Which ones must leave, so that the free slots do not "
    "touch?",
    "Four requests of 4 slots fill it. When the first and the third leave, 8 slots are free, in two holes "
    "of 4. "
    "Now ask for more than 4.",
)


def check(trial: Trial) -> str:
    steps = _steps(trial.answer)
    memory = GrowAndCopy(SLOTS)
    for number, step in enumerate(steps, start=1):
        before, hole = memory.account().external, largest_hole(memory)
        try:
            carry_out(step, memory)
        except MemoryError:
            _judge_failure(steps, number, step, before, hole)
            break
        except (KeyError, ValueError) as error:
            raise Refused(f"operation {number}, `{step}`: {error.args[0]}.") from error
    else:
        raise Refused(
            f"every operation fits: at the end {memory.account().external} slots are free, the largest hole "
            f"has {largest_hole(memory)}. The last operation has to fail."
        )
    return (
        f"`{steps[-1]}` fails with {before} slots free, because the largest hole has {hole}. In blocks of "
        f"{BLOCK} the same script fits."
    )


def _steps(answer: object) -> list:
    if not isinstance(answer, str):
        raise Refused(f"`no_room` should be a script, text in quotes; got {show(answer)}.")
    try:
        return parse(answer)
    except ValueError as error:
        raise Refused(f"{error}.") from error


def _judge_failure(steps: list, number: int, step, free: int, hole: int) -> None:
    """Refused unless the failing operation is the last one, an admit, and for want of a hole alone."""
    where = f"operation {number}, `{step}`"
    if step.kind != "admit":
        raise Refused(f"{where}: it fails, but a request that grows is another story. Let an admit fail.")
    if step.tokens > free:
        raise Refused(
            f"{where}: it needs {step.tokens} slots and only {free} are free, so no allocator could place "
            f"it. "
            "Leave enough free, in pieces."
        )
    if number < len(steps):
        raise Refused(
            f"{where}: it fails as it should, but {len(steps) - number} more follow. Let it be the last."
        )
    paged = PagedAllocator(SLOTS, BLOCK)
    try:
        for operation in steps:
            carry_out(operation, paged)
    except MemoryError:
        raise Refused(
            f"{where}: it fails, but in blocks of {BLOCK} something fails as well, because odd lengths "
            f"leave a "
            "slot of a block empty. Use even lengths."
        ) from None


exercise = Exercise(
    id="02.no_room",
    title="Enough is free, and nothing fits",
    kind="value",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "everything fits",
            'no_room = "admit A 4; admit B 4; release A; admit C 8"\n',
            says="every operation fits: at the end 4 slots are free, the largest hole has 4",
        ),
        WrongAnswer(
            "too little is free",
            'no_room = "admit A 8; admit B 4; admit C 6"\n',
            says="it needs 6 slots and only 4 are free",
        ),
        WrongAnswer(
            "neighbours leave",
            'no_room = "admit A 4; admit B 4; admit C 4; admit D 4; release A; release B; admit E 8"\n',
            says="every operation fits: at the end 0 slots are free",
        ),
        WrongAnswer(
            "goes on after the failure",
            'no_room = "admit A 4; admit B 4; admit C 8; release A; release C; admit D 12; release B"\n',
            says="1 more follow",
        ),
        WrongAnswer(
            "odd lengths",
            'no_room = "admit A 3; admit B 5; admit C 3; admit D 5; release A; release C; admit E 5"\n',
            says="Use even lengths",
        ),
        WrongAnswer("a list", 'no_room = ["admit A 4"]\n', says="should be a script, text in quotes"),
        WrongAnswer(
            "another language", 'no_room = "alloc A 4"\n', says="there are admit, append and release"
        ),
        WrongAnswer("growth fails", 'no_room = "admit A 8; admit B 8; append A"\n', says="Let an admit fail"),
        WrongAnswer("releases a stranger", 'no_room = "admit A 8; release B"\n', says="no request 'B'"),
    ],
)
