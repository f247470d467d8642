"""Asking any block manager for the slots of one step, and refusing what cannot be slots or a block table.

A learner's manager may be wrong in any way. What it returns is checked here, so that a mistake ends in a
sentence about the request and not in an index error from a tensor library. A wrong but possible slot passes:
that is what the sentinels and the model's text show.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import index

from kvlab.block_table import BlockCopy, Slot

SMALLEST_INTERFACE = (
    "append_slot",
    "release",
    "block_table",
    "length",
    "free_order",
    "num_blocks",
    "block_size",
)


class ManagerError(RuntimeError):
    """A block manager returned something that cannot be; the message names the request."""


def require_interface(manager) -> None:
    """Raises TypeError naming what the manager lacks of the smallest interface."""
    missing = [name for name in SMALLEST_INTERFACE if not hasattr(manager, name)]
    if missing:
        raise TypeError(f"{type(manager).__name__} is no block manager yet: it has no {', '.join(missing)}.")


@contextmanager
def grow(
    manager, counts: Mapping[Hashable, int], copy: Callable[[Iterable[BlockCopy]], None]
) -> Iterator[dict[Hashable, list[Slot]]]:
    """Slots for `counts[request_id]` more tokens of each request; the body then writes their K and V.

    With a manager that can `reserve`, a clean exit commits the lengths and an exception rolls it all back.
    Any other manager grows token by token and keeps what it has grown when something fails. `copy` carries
    out the copies of copy-on-write, before the body writes anything.
    """
    if hasattr(manager, "reserve"):
        with manager.reserve(dict(counts)) as reservation:
            slots = {}
            for request_id in counts:
                growth = reservation[request_id]
                slots[request_id] = [as_slot(slot, request_id, manager) for slot in growth.slots]
                copy(growth.copies)
            _check_slots(slots, counts)
            yield slots
    else:
        slots = {
            request_id: [_append_slot(manager, request_id, copy) for _ in range(count)]
            for request_id, count in counts.items()
        }
        _check_slots(slots, counts)
        yield slots


def _append_slot(manager, request_id: Hashable, copy: Callable[[Iterable[BlockCopy]], None]) -> Slot:
    slot = as_slot(manager.append_slot(request_id), request_id, manager)
    if slot.copied_from is not None:
        copy([BlockCopy(slot.copied_from, slot.block, slot.offset)])
    return slot


def as_slot(value, request_id: Hashable, manager) -> Slot:
    """`value` as a Slot, from a Slot or any (block, offset). Raises ManagerError for anything else."""
    try:
        block, offset, *rest = value
        slot = Slot(index(block), index(offset), rest[0] if rest else None)
    except (TypeError, ValueError):
        raise ManagerError(f"The slot for {request_id!r} is {value!r}, not (block, offset).") from None
    if not (0 <= slot.block < manager.num_blocks and 0 <= slot.offset < manager.block_size):
        raise ManagerError(
            f"The slot for {request_id!r} is block {slot.block} offset {slot.offset}, which does not exist: "
            f"blocks are 0 to {manager.num_blocks - 1}, offsets 0 to {manager.block_size - 1}."
        )
    return slot


def _check_slots(slots: Mapping[Hashable, list[Slot]], counts: Mapping[Hashable, int]) -> None:
    holder: dict[tuple[int, int], Hashable] = {}
    for request_id, given in slots.items():
        if len(given) != counts[request_id]:
            raise ManagerError(f"{request_id!r} needs {counts[request_id]} slots and got {len(given)}.")
        for slot in given:
            place = slot.block, slot.offset
            if place in holder:
                raise ManagerError(
                    f"Block {slot.block} offset {slot.offset} was given out twice in one step: "
                    f"to {holder[place]!r} and to {request_id!r}."
                )
            holder[place] = request_id


def checked_table(manager, request_id: Hashable, length: int) -> list[int]:
    """The blocks of the table that hold `length` tokens. Raises ManagerError if they cannot."""
    table = manager.block_table(request_id)
    try:
        blocks = [index(block) for block in table]
    except TypeError:
        raise ManagerError(
            f"The block table of {request_id!r} is {table!r}, not a list of block ids."
        ) from None
    needed = -(-length // manager.block_size)
    if len(blocks) < needed:
        raise ManagerError(
            f"The block table of {request_id!r} is {blocks}, but {length} tokens need {needed} blocks of "
            f"{manager.block_size}."
        )
    for block in blocks[:needed]:
        if not 0 <= block < manager.num_blocks:
            raise ManagerError(
                f"The block table of {request_id!r} is {blocks}, but there is no block {block}: "
                f"blocks are 0 to {manager.num_blocks - 1}."
            )
    return blocks[:needed]


def check_length(manager, request_id: Hashable, expected: int, is_new: bool) -> None:
    """Raises ManagerError unless the manager's length is the number of tokens whose K and V were written."""
    try:
        length = manager.length(request_id)
    except KeyError:
        if not is_new:
            raise
        return
    if length != expected and not (is_new and length is None):
        raise ManagerError(
            f"The manager says that {request_id!r} has {length!r} tokens, but K and V of {expected} were "
            "written: release it and feed its tokens again."
        )
