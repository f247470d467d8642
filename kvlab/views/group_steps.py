"""Run a script on layer groups that share one pool, and keep a frame of every step."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from kvlab.script import Operation

_MOST_TOLD = 6  # blocks that a sentence lists


class GroupFrame(NamedTuple):
    """The state after one step.

    tables: request -> a table a group, 0 where a block was given back. taken, given: what each (request,
    group) took and gave back in this step. free: next to be handed out first.
    """

    step: int
    operation: Operation | None
    telling: str
    lengths: Mapping[Hashable, int]
    tables: Mapping[Hashable, tuple[tuple[int, ...], ...]]
    free: tuple[int, ...]
    taken: Mapping[tuple[Hashable, int], tuple[int, ...]]
    given: Mapping[tuple[Hashable, int], tuple[int, ...]]
    error: str | None = None


def group_names(groups: Sequence[Any]) -> list[str]:
    """A name for each group, such as "full", "sliding 1", "sliding 2"."""
    kinds = [group.kind for group in groups]
    return [
        f"{kind} {kinds[: i + 1].count(kind)}" if kinds.count(kind) > 1 else kind
        for i, kind in enumerate(kinds)
    ]


def record_groups(script: Sequence[Operation], manager: Any) -> list[GroupFrame]:
    """Run "append A 5" and "release A" on a `HybridManager`.

    A refusal for want of blocks is told and the script goes on; any other error ends it in a last frame.
    """
    names = group_names(manager.groups)
    frames = [_frame(0, None, "Before the first step.", manager, {}, {})]
    for step, operation in enumerate(script, start=1):
        before, rid = frames[-1], operation.request_id
        try:
            if operation.kind == "release":
                manager.release(rid)
            else:
                manager.append(rid, operation.count)
        except MemoryError as refused:
            telling = f"{rid} + {_count(operation.count, 'token')} is refused: {refused}. Nothing changed."
            frames.append(_frame(step, operation, telling, manager, {}, {}))
            continue
        except Exception as raised:
            # str() of a KeyError is the repr of its message.
            said = raised.args[0] if isinstance(raised, KeyError) and raised.args else raised
            error = f"{type(raised).__name__}: {said}"
            told = f"{operation.kind} {rid} raises {error}."
            return [*frames, _frame(step, operation, told, manager, {}, {})._replace(error=error)]
        tables = _tables(manager)
        taken, given = _changes(before.tables, tables)
        telling = _tell(operation, manager, names, taken, given)
        frames.append(_frame(step, operation, telling, manager, taken, given))
    return frames


def _frame(step: int, operation: Operation | None, telling: str, manager: Any, taken, given) -> GroupFrame:
    lengths = {rid: manager.length(rid) for rid in manager.request_ids()}
    free = tuple(manager.free_order())
    return GroupFrame(step, operation, telling, lengths, _tables(manager), free, taken, given)


def _tables(manager: Any) -> dict[Hashable, tuple[tuple[int, ...], ...]]:
    numbers = range(len(manager.groups))
    return {
        rid: tuple(tuple(manager.block_table(rid, number)) for number in numbers)
        for rid in manager.request_ids()
    }


def _changes(before: Mapping, after: Mapping) -> tuple[dict, dict]:
    taken, given = {}, {}
    for rid in {**before, **after}:
        old, new = before.get(rid), after.get(rid)
        for number in range(len(old or new)):
            was = [block for block in (old[number] if old else ()) if block]
            now = [block for block in (new[number] if new else ()) if block]
            # A block that is given back can be taken at once by the same group.
            places = {place: block for place, block in enumerate(old[number] if old else ()) if block}
            kept = {
                block for place, block in places.items() if new and new[number][place : place + 1] == (block,)
            }
            if gone := tuple(block for block in was if block not in kept):
                given[rid, number] = gone
            if fresh := tuple(block for block in now if block not in kept):
                taken[rid, number] = fresh
    return taken, given


def _tell(operation: Operation, manager: Any, names: Sequence[str], taken: Mapping, given: Mapping) -> str:
    rid = operation.request_id
    if operation.kind == "release":
        freed = [block for blocks in given.values() for block in blocks]
        return f"{rid} is released: {_count(len(freed), 'block')} of all groups free again."
    said = []
    for number, name in enumerate(names):
        gave, took = given.get((rid, number)), taken.get((rid, number))
        parts = [f"gives back {_blocks(gave)}"] if gave else []
        parts += [f"takes {_blocks(took)}"] if took else []
        if parts:
            said.append(f"{name} {' and '.join(parts)}")
    happened = "; ".join(said) or "every group has room"
    return f"{rid} appends {_count(operation.count, 'token')}, length {manager.length(rid)}: {happened}."


def _blocks(blocks: Sequence[int]) -> str:
    more = f" and {len(blocks) - _MOST_TOLD} more" if len(blocks) > _MOST_TOLD else ""
    return f"block{'s' * (len(blocks) != 1)} {', '.join(map(str, blocks[:_MOST_TOLD]))}{more}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
