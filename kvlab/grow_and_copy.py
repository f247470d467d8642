"""Growing in one piece: no reservation, but a request that meets its neighbour has to move.

A request takes the first hole that its tokens fit into. It grows into free slots right behind it as long as
there are any. When there are none, it is copied to a larger hole, and while that happens both places are
taken. Holes of released requests remain between the others, and one day the free slots are enough but no
hole is: that is external fragmentation. Compaction moves everybody together and pays for it in copies.
"""

from __future__ import annotations

from collections.abc import Hashable

from kvlab.allocator import Allocator, Held, OutOfSlots
from kvlab.holes import FirstFit


class GrowAndCopy(Allocator):
    """First fit, growth by copy, and compaction if asked for.

    Args:
        num_slots: slots of the memory.
        headroom: spare slots to take with each placement and growth, if they are to be had; fewer moves,
            more empty slots.
        compaction: when no hole is large enough but the free slots are, move everybody together.
    """

    name = "first fit"

    def __init__(self, num_slots: int, *, headroom: int = 0, compaction: bool = False):
        super().__init__(num_slots)
        if not isinstance(headroom, int) or headroom < 0:
            raise ValueError(f"headroom must be a whole number of at least 0 slots, got {headroom!r}")
        self.headroom, self.compaction = headroom, compaction
        if compaction:
            self.name = "first fit, compacting"
        self._holes = FirstFit(num_slots)

    def holes(self) -> list[tuple[int, int]]:
        """(start, size) of each hole, by address."""
        return self._holes.holes()

    def _slots_at_most(self, prompt: int, output: int) -> int:
        return prompt + output

    def _place(self, request_id: Hashable, prompt: int, output: int) -> Held:
        for size in dict.fromkeys((prompt + self.headroom, prompt)):
            start = self._holes.take(size)
            if start is not None:
                return Held(start, size, prompt, prompt + output)
        if not self.compaction or self._holes.free < prompt:
            raise OutOfSlots(prompt, self._holes.free, self._holes.largest)
        self._compact()
        return Held(self._holes.take(prompt), prompt, prompt, prompt + output)

    def _grow(self, request_id: Hashable, held: Held) -> None:
        behind = self._holes.room_at(held.start + held.size)
        if behind:
            more = min(behind, 1 + self.headroom)
            self._holes.take_at(held.start + held.size, more)
        else:
            more = self._move(held) or self._make_room(held)
        self._count(held, -1)
        held.size += more
        self._count(held, 1)

    def _move(self, held: Held) -> int:
        """Copy the request into a hole with more slots; how many more, 0 when there is none."""
        for more in dict.fromkeys((1 + self.headroom, 1)):
            start = self._holes.take(held.size + more)
            if start is not None:
                self._holes.give(held.start, held.size)
                held.start = start
                self.copies += held.tokens
                return more
        return 0

    def _make_room(self, held: Held) -> int:
        """Compact so that one free slot lies behind the request, and take it."""
        if not self.compaction or not self._holes.free:
            raise OutOfSlots(held.size + 1, self._holes.free, self._holes.largest)
        self._holes.free -= 1
        self._compact(growing=held)
        return 1

    def _give_back(self, request_id: Hashable, held: Held) -> None:
        self._holes.give(held.start, held.size)

    def _compact(self, growing: Held | None = None) -> None:
        """Move everybody to the front, in order; `growing` gets one more slot behind it."""
        end = 0
        for held in sorted(self._held.values(), key=lambda held: held.start):
            if held.start != end:
                self.copies += held.tokens
                held.start = end
            end += held.size + (held is growing)
        self._holes.clear_from(end, self.num_slots)
