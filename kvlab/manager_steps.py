"""Asking any block manager for the slots of one step, and refusing what cannot be slots or a block table.

A learner's manager may be wrong in any way. What it returns is checked here, so that a mistake ends in a
sentence about the request and not in an index error from a tensor library. A wrong but possible slot passes:
that is what the sentinels and the model's text show.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import index

from kvlab.block_table import BlockCopy, Growth, Slot
from kvlab.prefix_cache import ExtraKeys

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
    manager,
    tokens: Mapping[Hashable, Sequence[int]],
    copy: Callable[[list[BlockCopy]], None],
    extra_keys: Mapping[Hashable, ExtraKeys],
) -> Iterator[dict[Hashable, Growth]]:
    """A slot for each of `tokens[request_id]`; the body then writes the K and V of those not cached.

    With a manager that can `reserve`, a clean exit commits the lengths and an exception rolls it all back.
    Any other manager grows token by token and keeps what it has grown when something fails. `copy` is called
    once, with all copies of copy-on-write in order, before the body writes anything.
    """
    counts = {request_id: len(ids) for request_id, ids in tokens.items()}
    if hasattr(manager, "reserve"):
        with _reserve(manager, tokens, counts, extra_keys) as reservation:
            growths = {r: _as_growth(reservation[r], r, manager) for r in counts}
            _check_slots(growths, counts)
            copy(_all_copies(growths))
            yield growths
    else:
        growths = {r: _append_slots(manager, r, count) for r, count in counts.items()}
        _check_slots(growths, counts)
        copy(_all_copies(growths))
        yield growths


def _all_copies(growths: Mapping[Hashable, Growth]) -> list[BlockCopy]:
    return [copy for growth in growths.values() for copy in growth.copies]


def _reserve(manager, tokens, counts, extra_keys):
    # Only a manager with a prefix cache can make use of the tokens' ids.
    if getattr(manager, "prefix_cache", None) is None:
        return manager.reserve(counts)
    keys = {request_id: extra_keys[request_id] for request_id in tokens if request_id in extra_keys}
    return manager.reserve({request_id: list(ids) for request_id, ids in tokens.items()}, keys=keys)


def _as_growth(growth: Growth, request_id: Hashable, manager) -> Growth:
    slots = [as_slot(slot, request_id, manager) for slot in growth.slots]
    return Growth(slots, [BlockCopy(*copy) for copy in growth.copies], growth.cached)


def _append_slots(manager, request_id: Hashable, count: int) -> Growth:
    slots = [as_slot(manager.append_slot(request_id), request_id, manager) for _ in range(count)]
    copies = [BlockCopy(s.copied_from, s.block, s.offset) for s in slots if s.copied_from is not None]
    return Growth(slots, copies)


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


def _check_slots(growths: Mapping[Hashable, Growth], counts: Mapping[Hashable, int]) -> None:
    holder: dict[tuple[int, int], Hashable] = {}
    for request_id, growth in growths.items():
        count = counts[request_id]
        if len(growth.slots) != count:
            raise ManagerError(f"{request_id!r} needs {count} slots and got {len(growth.slots)}.")
        if not 0 <= growth.cached < count:
            raise ManagerError(
                f"{request_id!r} brings {count} tokens, {growth.cached} of them cached: one must be computed."
            )
        for slot in growth.slots[growth.cached :]:
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
