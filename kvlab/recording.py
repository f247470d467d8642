"""Run a script of operations against any block manager and keep a frame of every step.

The views step through frames, so a picture always shows what the given object really did, learner's
mistakes included: a manager that raises or breaks a rule yields a last frame that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kvlab.block_pool import Event
from kvlab.block_table import BlockCopy, Slot
from kvlab.script import Operation, parse_script
from kvlab.state import State, snapshot, violations
from kvlab.telling import tell


@dataclass(frozen=True)
class Frame:
    """The state after one operation (frame 0: before the first).

    slots: written in this step, by request. error: set in a last frame whose operation raised, returned
    nonsense or broke a rule; the state is then the last one that could be read.
    """

    step: int
    operation: Operation | None
    state: State
    telling: str
    slots: dict[Hashable, list[Slot]]
    copies: list[BlockCopy]
    events: list[Event]
    error: str | None = None
    bad_blocks: tuple[int, ...] = ()


def record(
    script: str | Sequence[Operation],
    manager,
    *,
    call: Callable[..., Any] = lambda function, *args: function(*args),
) -> list[Frame]:
    """Run `script` against `manager`, one frame an operation.

    A refusal for want of blocks (MemoryError) that changes nothing is told and the script goes on.

    Args:
        manager: anything with the smallest manager's interface.
        call: runs each of the manager's methods; a place for a time limit on a learner's code.
    """
    operations = parse_script(script) if isinstance(script, str) else list(script)
    return list(_frames(operations, manager, call))


def _frames(operations: list[Operation], manager, call: Callable[..., Any]) -> Iterator[Frame]:
    try:
        state = call(snapshot, manager, list(getattr(manager, "request_ids", list)()))
    except Exception as raised:
        nothing = State(getattr(manager, "num_blocks", 0), getattr(manager, "block_size", 1), {}, {}, ())
        yield Frame(0, None, nothing, "The manager cannot be read.", {}, [], [], _sentence(raised))
        return
    yield Frame(0, None, state, "Before the first step.", {}, [], [])
    for step, operation in enumerate(operations, start=1):
        frame = _step(step, operation, manager, state, call)
        yield frame
        if frame.error is not None:
            return
        state = frame.state


def _step(step: int, operation: Operation, manager, before: State, call: Callable[..., Any]) -> Frame:
    slots: dict[Hashable, list[Slot]] = {}
    error = refusal = stopped = None
    live = list(before.tables)
    try:
        slots = _run(operation, manager, call)
        live = _live_after(operation, live)
    except MemoryError as refused:
        refusal = str(refused) or "out of blocks"
    except Exception as raised:
        stopped = error = _sentence(raised)
    try:
        after = call(snapshot, manager, live)
    except Exception as raised:
        error = error or _sentence(raised)
        after = before
    if refusal is not None and (after != before or _debris(operation, before, manager)):
        error = f"refused ({refusal}), but the state was changed"
    broken = violations(after)
    error = error or next((violation.sentence for violation in broken), None)
    error = error or _misplaced(before, after, slots)
    copies = [copy for written in slots.values() for copy in _copies(written)]
    return Frame(
        step,
        operation,
        after,
        tell(operation, before, after, slots, copies, refusal, stopped),
        slots,
        copies,
        list(_events(before, after, operation, copies)),
        error,
        tuple(violation.block for violation in broken if violation.block is not None),
    )


def _run(operation: Operation, manager, call: Callable[..., Any]) -> dict[Hashable, list[Slot]]:
    if operation.kind == "append":
        if operation.count == 1 or not hasattr(manager, "append"):
            slots = [call(manager.append_slot, operation.request_id) for _ in range(operation.count)]
        else:
            growth = call(manager.append, operation.request_id, operation.count)
            slots = getattr(growth, "slots", growth)
        return {operation.request_id: _slots(slots, operation.count)}
    if operation.kind == "fork":
        call(manager.fork, operation.request_id, operation.other)
    elif operation.kind == "release":
        call(manager.release, operation.request_id)
    else:
        reservation = call(manager.reserve, dict(operation.batch))
        if operation.kind == "roll back":
            call(reservation.roll_back)
            return {}
        call(reservation.commit)
        return {
            request_id: _slots(reservation[request_id].slots, count) for request_id, count in operation.batch
        }
    return {}


def _slots(values: Any, count: int) -> list[Slot]:
    values = list(values) if isinstance(values, (list, tuple)) else values
    if not isinstance(values, list) or len(values) != count:
        raise TypeError(f"append returned {values!r}, not {count} slots")
    for value in values:
        if not isinstance(value, tuple) or not 2 <= len(value) <= 3:
            raise TypeError(f"append_slot returned {value!r}, not a slot (block, offset)")
    return [Slot(*value) for value in values]


def _live_after(operation: Operation, live: list[Hashable]) -> list[Hashable]:
    if operation.kind == "release":
        return [request_id for request_id in live if request_id != operation.request_id]
    if operation.kind == "roll back":
        return live
    grown = [request_id for request_id, _ in operation.batch] or [operation.other or operation.request_id]
    return list(dict.fromkeys([*live, *grown]))


def _debris(operation: Operation, before: State, manager) -> bool:
    """Whether a refused request that did not exist before exists now."""
    for request_id in [who for who, _ in operation.batch] or [operation.request_id]:
        if request_id in before.tables:
            continue
        try:
            if manager.block_table(request_id) or manager.length(request_id):
                return True
        except Exception:
            continue
    return False


def _misplaced(before: State, after: State, slots: dict[Hashable, list[Slot]]) -> str | None:
    """A sentence when a returned slot is not the one that the table gives the token."""
    for request_id, written in slots.items():
        first = before.lengths.get(request_id, 0)
        if after.lengths[request_id] != first + len(written):
            return (
                f"{request_id} had {first} tokens and appended {len(written)}, "
                f"but its length is {after.lengths[request_id]}"
            )
        for position, slot in enumerate(written, start=first):
            right = (after.tables[request_id][position // after.block_size], position % after.block_size)
            if tuple(slot[:2]) != right:
                return (
                    f"token {position} of {request_id} was put at block {slot.block} slot {slot.offset}, "
                    f"but its table says block {right[0]} slot {right[1]}"
                )
    return None


def _copies(slots: list[Slot]) -> list[BlockCopy]:
    return [
        BlockCopy(slot.copied_from, slot.block, slot.offset) for slot in slots if slot.copied_from is not None
    ]


def _events(before: State, after: State, operation: Operation, copies: list[BlockCopy]) -> Iterator[Event]:
    """What happened to blocks, read off the two states: true for managers that tell nothing themselves."""
    who = operation.request_id
    free_before, free_after = set(before.free), set(after.free)
    for block in before.free:
        if block not in free_after:
            yield Event("allocate", block, next(iter(after.holders(block)), who))
    for copy in copies:
        yield Event("copy", copy.destination, next(iter(after.holders(copy.destination)), who))
    if operation.kind == "fork":
        for block in dict.fromkeys(after.tables.get(operation.other, ())):
            yield Event("share", block, operation.other)
    for block in after.free:
        if block not in free_before:
            yield Event("free", block, who)


def _sentence(raised: Exception) -> str:
    # str() of a KeyError is the repr of its message.
    message = raised.args[0] if isinstance(raised, KeyError) and raised.args else raised
    return f"{type(raised).__name__}: {message}"
