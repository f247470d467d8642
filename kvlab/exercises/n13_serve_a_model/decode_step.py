"""13.decode_step: reserve, write, commit: the order that keeps the books and the KV together."""

from collections.abc import Callable

from kvlab.block_manager import BlockManager
from kvlab.block_pool import OutOfBlocks
from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.trial import Trial, show
from kvlab.state import State, snapshot

STUB = '''def decode_step(manager, new_tokens, compute):
    """One step for a whole batch: every request gets its slots, or none does.

    new_tokens: {"A": 1, "B": 1}, how many tokens each request is about to write.
    compute(slots, copies): copies blocks, writes K and V, runs the model. It may raise.
        slots: {"A": [slot], "B": [slot]};  copies: those that the reservation asks for.
    Returns what compute returns. The lengths grow only once compute has returned; if
    anything raises, the manager is as it was and the error reaches the caller.
    """
    ...  # about 3 lines
'''

SOLUTION = """def decode_step(manager, new_tokens, compute):
    with manager.reserve(new_tokens) as reservation:
        slots = {request_id: reservation[request_id].slots for request_id in new_tokens}
        return compute(slots, reservation.copies)
"""

HINTS = (
    "`manager.append` grows the length at once. `manager.reserve(new_tokens)` takes the blocks for the whole "
    "batch and waits: a clean end of the `with` commits the lengths, an exception gives the blocks back.",
    "Inside `with manager.reserve(new_tokens) as reservation:` the slots of A are in "
    '`reservation["A"].slots`, and the copies in `reservation.copies`. `compute` has to run in there.',
)

WRONG = (
    WrongAnswer(
        "appends first",
        "def decode_step(manager, new_tokens, compute):\n"
        "    slots = {r: manager.append(r, n).slots for r, n in new_tokens.items()}\n"
        "    return compute(slots, [])\n",
        "one block is free: the manager should be as before",
    ),
    WrongAnswer(
        "commits before it computes",
        "def decode_step(manager, new_tokens, compute):\n"
        "    with manager.reserve(new_tokens) as reservation:\n"
        "        slots = {r: reservation[r].slots for r in new_tokens}\n"
        "    return compute(slots, reservation.copies)\n",
        "while compute runs, A's length should still be 3",
    ),
    WrongAnswer(
        "one reservation a request",
        "def decode_step(manager, new_tokens, compute):\n"
        "    for r, n in new_tokens.items():\n"
        "        with manager.reserve({r: n}) as reservation:\n"
        "            result = compute({r: reservation[r].slots}, reservation.copies)\n"
        "    return result\n",
        "compute should not run at all",
    ),
    WrongAnswer(
        "swallows the failure",
        "def decode_step(manager, new_tokens, compute):\n"
        "    try:\n"
        "        with manager.reserve(new_tokens) as reservation:\n"
        "            return compute({r: reservation[r].slots for r in new_tokens}, reservation.copies)\n"
        "    except RuntimeError:\n"
        "        return None\n",
        "the caller has to hear of it",
    ),
    WrongAnswer(
        "commits what failed",
        "def decode_step(manager, new_tokens, compute):\n"
        "    reservation = manager.reserve(new_tokens)\n"
        "    try:\n"
        "        return compute({r: reservation[r].slots for r in new_tokens}, reservation.copies)\n"
        "    finally:\n"
        "        reservation.commit()\n",
        "the manager should be as before",
    ),
    WrongAnswer(
        "drops the copies", edited(SOLUTION, "reservation.copies", "[]"), "block 0's 2 slots must be copied"
    ),
    WrongAnswer("forgets to return", edited(SOLUTION, "return compute", "compute"), "what compute returned"),
)

GIVEN = "A holds 3 tokens and B 4, blocks of 4"


def _managed(num_blocks: int) -> BlockManager:
    manager = BlockManager(num_blocks, 4)
    manager.append("A", 3)
    manager.append("B", 4)
    return manager


def _check(trial: Trial) -> str:
    _a_full_pool_refuses_the_batch(trial)
    _runs_inside_the_reservation(trial)
    _a_failure_changes_nothing(trial)
    _copies_are_passed_on(trial)
    return "Reserve for the whole batch, write, and let the length grow last."


def _runs_inside_the_reservation(trial: Trial) -> None:
    manager = _managed(8)
    calls = []

    def compute(slots, copies):
        calls.append((dict(slots), {r: manager.length(r) for r in ("A", "B")}, manager.block_table("B")))
        return "next tokens"

    result = _call(trial, manager, {"A": 1, "B": 1}, compute, given=GIVEN)
    if len(calls) != 1 or set(calls[0][0]) != {"A", "B"}:
        seen = [sorted(slots) for slots, _, _ in calls]
        raise Refused(
            f"{GIVEN}: expected one call of compute with the slots of A and B; it was called for {seen}."
        )
    slots, lengths, _ = calls[0]
    for request_id, before in (("A", 3), ("B", 4)):
        if lengths[request_id] != before:
            raise Refused(
                f"{GIVEN}: while compute runs, {request_id}'s length should still be {before}, because its "
                f"K and V are not written yet; it was {lengths[request_id]} already."
            )
    trial.equal(
        slots,
        {"A": [(0, 3)], "B": [(2, 0)]},
        given=GIVEN,
        because="A has room in block 0, B needs a new block",
    )
    trial.equal(result, "next tokens", given=GIVEN, because="that is what compute returned")
    trial.equal(
        {r: manager.length(r) for r in ("A", "B")},
        {"A": 4, "B": 5},
        given=f"{GIVEN}, after the step",
        because="compute has returned, so each length grows by one",
    )


def _a_failure_changes_nothing(trial: Trial) -> None:
    manager = _managed(8)
    before = _books(manager)
    given = f"{GIVEN}, and compute raises RuntimeError half-way"

    def compute(slots, copies):
        raise RuntimeError("the kernel failed")

    because = "a step that failed is not done, and the caller has to hear of it"
    trial.raises(RuntimeError, manager, {"A": 1, "B": 1}, compute, given=given, because=because)
    _unchanged(manager, before, given)


def _a_full_pool_refuses_the_batch(trial: Trial) -> None:
    manager = BlockManager(3, 4)
    for request_id in ("A", "B"):
        manager.append(request_id, 4)
    before, calls = _books(manager), []
    given = "A and B hold 4 tokens each in blocks of 4, and one block is free"
    because = "both need a block and only one is free"
    trial.raises(
        OutOfBlocks, manager, {"A": 1, "B": 1}, lambda *args: calls.append(args), given=given, because=because
    )
    if calls:
        raise Refused(
            f"{given}: compute should not run at all, because the batch does not fit; it was called."
        )
    _unchanged(manager, before, given)


def _copies_are_passed_on(trial: Trial) -> None:
    manager = BlockManager(4, 4)
    manager.append("A", 2)
    manager.fork("A", "C")
    seen = []
    given = "A holds 2 tokens, C is its fork and writes one, blocks of 4"
    _call(trial, manager, {"C": 1}, lambda slots, copies: seen.extend(copies), given=given)
    because = "C writes into a shared block, so block 0's 2 slots must be copied to block 1 before the write"
    trial.equal([tuple(copy) for copy in seen], [(0, 1, 2)], given=f"{given}: the copies", because=because)


def _call(trial: Trial, manager: BlockManager, new_tokens: dict, compute: Callable, *, given: str) -> object:
    return trial.call(manager, new_tokens, compute, given=given)


def _books(manager: BlockManager) -> State:
    return snapshot(manager, manager.request_ids())


def _unchanged(manager: BlockManager, before: State, given: str) -> None:
    after = _books(manager)
    if after != before:
        raise Refused(
            f"{given}: the manager should be as before, tables {show(dict(before.tables))} and lengths "
            f"{show(dict(before.lengths))}; it has tables {show(dict(after.tables))} and lengths "
            f"{show(dict(after.lengths))}."
        )


exercise = Exercise(
    id="13.decode_step",
    title="The safe order of a decode step",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    wrong=WRONG,
    check=_check,
)
