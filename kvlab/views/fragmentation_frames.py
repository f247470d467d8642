"""What several memories look like after each operation of one script: a strip of slots each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kvlab.allocator import Allocator
from kvlab.slot_script import Step, carry_out, largest_hole


class Strip(NamedTuple):
    """One memory after a step. slots: (request or None, filled?); `problem`: why the step failed here."""

    name: str
    slots: tuple[tuple[str | None, bool], ...]
    block_size: int
    free: int
    largest: int
    problem: str | None


def slots_of(allocator: Allocator) -> tuple[tuple[str | None, bool], ...]:
    """Who holds each slot of the memory, and whether there is a token in it."""
    slots: list[tuple[str | None, bool]] = [(None, False)] * allocator.num_slots
    for who in allocator.request_ids():
        held = allocator.held(who)
        if held.start is None:
            size = allocator.block_size
            table = allocator.manager.block_table(who)
            places = [block * size + offset for block in table for offset in range(size)]
        else:
            places = list(range(held.start, held.start + held.size))
        for number, place in enumerate(places):
            slots[place] = (who, number < held.tokens)
    return tuple(slots)


def strip_of(allocator: Allocator, problem: str | None = None) -> Strip:
    """The strip of an allocator as it is now."""
    return Strip(
        allocator.name,
        slots_of(allocator),
        getattr(allocator, "block_size", 0),
        allocator.account().external,
        largest_hole(allocator),
        problem,
    )


def record(steps: Sequence[Step], allocators: Sequence[Allocator]) -> list[tuple[Step | None, list[Strip]]]:
    """A frame for the start and one for each operation. What fails in one memory goes on in the others.

    A request that was refused is gone: later operations on it are skipped in that memory.
    """
    frames: list[tuple[Step | None, list[Strip]]] = [(None, [strip_of(a) for a in allocators])]
    refused: list[set[str]] = [set() for _ in allocators]
    for step in steps:
        strips = []
        for allocator, gone in zip(allocators, refused, strict=True):
            problem = None
            if step.kind == "admit":
                gone.discard(step.request_id)
            if step.request_id not in gone:
                try:
                    carry_out(step, allocator)
                except (MemoryError, ValueError) as error:
                    problem = str(error)
                    if step.kind == "admit":
                        gone.add(step.request_id)
            strips.append(strip_of(allocator, problem))
        frames.append((step, strips))
    return frames
