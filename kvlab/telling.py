"""One line of plain words for each step of a recording."""

from __future__ import annotations

from collections.abc import Hashable

from kvlab.block_table import BlockCopy, Slot
from kvlab.script import Operation
from kvlab.state import State


def tell(
    operation: Operation,
    before: State,
    after: State,
    slots: dict[Hashable, list[Slot]],
    copies: list[BlockCopy],
    refusal: str | None,
    stopped: str | None,
) -> str:
    """The step in words, such as "A appends token 8: block 3 allocated, table [7, 1, 3], length 9."."""
    if refusal is not None:
        return f"{_asked(operation)} is refused: {refusal}. Nothing changed."
    if stopped is not None:
        return f"{_asked(operation)} raises {stopped}."
    if operation.kind == "fork":
        return _fork(operation, after)
    if operation.kind == "release":
        return _release(operation, before, after)
    if operation.kind == "roll back":
        return f"{_asked(operation)} was reserved and rolled back: everything is as it was."
    grown = [_append(who, before, after, written, copies) for who, written in slots.items()]
    prefix = "One step for the batch. " if operation.kind == "reserve" else ""
    return prefix + " ".join(grown)


def _asked(operation: Operation) -> str:
    if operation.batch:
        return ", ".join(f"{who} + {_tokens(count)}" for who, count in operation.batch)
    if operation.kind == "append":
        return f"{operation.request_id} + {_tokens(operation.count)}"
    return f"{operation.kind} {operation.request_id}"


def _append(who: Hashable, before: State, after: State, written: list[Slot], copies: list[BlockCopy]) -> str:
    first = before.lengths.get(who, 0)
    table = after.tables.get(who, ())
    old = before.tables.get(who, ())
    copy = next((c for c in copies if written and c.source == written[0].copied_from), None)
    known = {*old, after.hole, copy.destination if copy else None}
    new = [block for block in table if block not in known]
    happened = []
    if copy:
        copied = f"{_count(copy.num_slots, 'slot')} copied to block {copy.destination}"
        happened.append(f"block {copy.source} is shared: {copied}")
    if new:
        happened.append(f"{_blocks(new)} allocated")
    left = [block for block in old if after.hole is not None and block not in table]
    if left:
        happened.append(f"{_blocks(left)} behind the window given back")
    if not new and not copy:
        happened.append(f"block {written[0].block} has room, slot {written[0].offset}")
    last = first + len(written) - 1
    what = f"token {first}" if last == first else f"tokens {first} to {last}"
    return (
        f"{who} appends {what}: {', '.join(happened)}, table {list(table)}, length {after.lengths.get(who)}."
    )


def _fork(operation: Operation, after: State) -> str:
    parent, child = operation.request_id, operation.other
    table = list(dict.fromkeys(after.tables.get(child, ())))
    return f"{child} is forked from {parent}: it shares {_blocks(table)}, no block taken."


def _release(operation: Operation, before: State, after: State) -> str:
    table = before.tables.get(operation.request_id, ())
    was_free = set(before.free)
    freed = [block for block in after.free if block not in was_free]
    kept = [block for block in dict.fromkeys(table) if block not in freed]
    happened = [f"{_blocks(freed)} free again"] if freed else []
    if kept:
        happened.append(f"{_blocks(kept)} kept by another holder")
    return f"{operation.request_id} is released: {', '.join(happened) or 'it held no block'}."


def _blocks(blocks: list[int]) -> str:
    return f"block{'s' * (len(blocks) != 1)} {', '.join(map(str, blocks))}"


def _tokens(count: int) -> str:
    return _count(count, "token")


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"
