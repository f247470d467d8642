"""One step of beam search as moves on block tables: who dies, who is forked, and who goes on in place."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple, Protocol


class Shareable(Protocol):
    """Anything whose requests can be forked and released: a block manager, sequences, a learner's manager."""

    def fork(self, parent_id: Hashable, child_id: Hashable) -> None: ...

    def release(self, request_id: Hashable) -> None: ...


class Moves(NamedTuple):
    """What one step does to the tables, in this order.

    released: beams that nobody goes on from. forked: (parent, child). children: the request that each
    survivor goes on in, one a survivor, in the survivors' order.
    """

    released: list[Hashable]
    forked: list[tuple[Hashable, Hashable]]
    children: list[Hashable]


def plan_moves(live: Sequence[Hashable], parents: Sequence[Hashable], names: Iterator[Hashable]) -> Moves:
    """The moves that turn the live beams into the survivors.

    A beam's first survivor goes on in the beam's own table; each further one needs a fork.

    Args:
        live: the beams' requests.
        parents: for each survivor, the live request that it continues.
        names: gives a fresh id for each fork.

    Raises:
        ValueError: a parent that is not live.
    """
    strangers = [parent for parent in parents if parent not in live]
    if strangers:
        raise ValueError(f"beam {strangers[0]!r} is not live: a survivor must continue one of {list(live)}.")
    forked: list[tuple[Hashable, Hashable]] = []
    children: list[Hashable] = []
    continued: set[Hashable] = set()
    for parent in parents:
        child = parent
        if parent in continued:
            child = next(names)
            forked.append((parent, child))
        continued.add(parent)
        children.append(child)
    return Moves([beam for beam in live if beam not in continued], forked, children)


def carry_out(moves: Moves, holder: Shareable) -> None:
    """Release the dead, then fork.

    The dead go first, so that their blocks are there when the survivors grow. All forks are made before
    anybody writes: a child forked later would hold its parent's new token, too.
    """
    for beam in moves.released:
        holder.release(beam)
    for parent, child in moves.forked:
        holder.fork(parent, child)
