"""What paging replaced: every request gets one piece of memory, reserved when it arrives.

| allocator  | reserves                                        | has to know                       |
|------------|-------------------------------------------------|-----------------------------------|
| ReserveMax | max_len slots                                   | nothing                           |
| PowerOfTwo | prompt + the output rounded up to a power of two | the output, within a factor of 2 |
| Oracle     | prompt + output                                 | the output, which nobody can      |

These are the three Orca baselines of the PagedAttention paper (arXiv:2309.06180, 6.1): Max, Pow2 and Oracle.
Their pieces come from a buddy allocator, so each reservation also loses what its rounding up to a power of
two adds; in the account that is part of `external`. `grow_and_copy` has the one that reserves nothing ahead.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable

from kvlab.allocator import Account, Allocator, Held, OutOfSlots
from kvlab.grow_and_copy import GrowAndCopy
from kvlab.holes import Buddy, FirstFit, power_of_two

__all__ = ["Account", "GrowAndCopy", "Oracle", "OutOfSlots", "PowerOfTwo", "ReserveMax"]

PLACEMENTS = {"buddy": Buddy, "first fit": FirstFit}


class Reserving(Allocator):
    """One piece a request, of a size that is settled on arrival.

    Args:
        num_slots: slots of the memory.
        max_len: the most tokens that a request may have.
        placement: "buddy", as in the paper, or "first fit", which loses nothing to rounding.
    """

    def __init__(self, num_slots: int, max_len: int, placement: str = "buddy"):
        super().__init__(num_slots)
        if not isinstance(max_len, int) or max_len < 1:
            raise ValueError(f"max_len must be a whole number of at least 1 token, got {max_len!r}")
        if placement not in PLACEMENTS:
            raise ValueError(f"placement must be one of {', '.join(PLACEMENTS)}, got {placement!r}")
        self.max_len = max_len
        self._holes = PLACEMENTS[placement](num_slots)
        self._largest_empty = self._holes.largest

    @abstractmethod
    def reservation(self, prompt: int, output: int) -> int:
        """Slots to set aside for a request of these lengths."""

    def problem(self, prompt: int, output: int) -> str | None:
        """As for any allocator; nor may a request be longer than max_len or than the largest piece."""
        if prompt + output > self.max_len:
            return f"{prompt} + {output} tokens are more than max_len, {self.max_len}: shorten it"
        problem = super().problem(prompt, output)
        if problem is None and self.reservation(prompt, output) > self._largest_empty:
            return (
                f"it needs {self.reservation(prompt, output)} slots in one piece, and the largest piece of "
                f"the empty memory has {self._largest_empty}: it can never fit"
            )
        return problem

    def holes(self) -> list[tuple[int, int]]:
        """(start, size) of each free piece, by address."""
        return self._holes.holes()

    def _slots_at_most(self, prompt: int, output: int) -> int:
        return self.reservation(prompt, output)

    def _place(self, request_id: Hashable, prompt: int, output: int) -> Held:
        size = self.reservation(prompt, output)
        start = self._holes.take(size)
        if start is None:
            raise OutOfSlots(size, self._holes.free, self._holes.largest)
        return Held(start, size, prompt, prompt + output)

    def _grow(self, request_id: Hashable, held: Held) -> None:
        raise OutOfSlots(held.size + 1, self._holes.free, self._holes.largest)

    def _give_back(self, request_id: Hashable, held: Held) -> None:
        self._holes.give(held.start, held.size)


class ReserveMax(Reserving):
    """Reserves max_len slots for everyone: simple, safe, and mostly empty."""

    name = "reserve max"

    def reservation(self, prompt: int, output: int) -> int:
        return self.max_len


class PowerOfTwo(Reserving):
    """Knows each output within a factor of 2: reserves the prompt and the output's next power of two."""

    name = "power of two"

    def reservation(self, prompt: int, output: int) -> int:
        return min(prompt + power_of_two(output), self.max_len)


class Oracle(Reserving):
    """Knows each output exactly, which no server can: what contiguous reservations could reach at best."""

    name = "oracle"

    def reservation(self, prompt: int, output: int) -> int:
        return prompt + output
