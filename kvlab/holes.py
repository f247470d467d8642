"""Free space as holes: two ways to find a piece of it, first fit and the buddy system.

Both have one interface: `take(size)` gives the start of a free piece or None, `give(start, size)` returns it,
`free` and `largest` say how many slots are free in all and in one piece.
"""

from __future__ import annotations

from bisect import bisect_left


def power_of_two(size: int) -> int:
    """The smallest power of two that is at least `size`."""
    return 1 << max(0, size - 1).bit_length()


class FirstFit:
    """A list of holes by address. The first one that is large enough is cut; neighbours are merged again."""

    def __init__(self, num_slots: int):
        self.free = num_slots
        self._starts = [0]
        self._sizes = [num_slots]

    @property
    def largest(self) -> int:
        return max(self._sizes, default=0)

    def holes(self) -> list[tuple[int, int]]:
        """(start, size) of each hole, by address."""
        return list(zip(self._starts, self._sizes, strict=True))

    def take(self, size: int) -> int | None:
        """The start of the first hole's first `size` slots; None when no hole is large enough."""
        for start, hole in zip(self._starts, self._sizes, strict=True):
            if hole >= size:
                self.take_at(start, size)
                return start
        return None

    def room_at(self, start: int) -> int:
        """Free slots from `start` on, without a gap; 0 when that slot is taken or no hole begins there."""
        at = bisect_left(self._starts, start)
        return self._sizes[at] if at < len(self._starts) and self._starts[at] == start else 0

    def take_at(self, start: int, size: int) -> None:
        """Cut `size` slots from the front of the hole that begins at `start`."""
        at = bisect_left(self._starts, start)
        if self._sizes[at] == size:
            del self._starts[at], self._sizes[at]
        else:
            self._starts[at] += size
            self._sizes[at] -= size
        self.free -= size

    def give(self, start: int, size: int) -> None:
        """Return a piece, and merge it with the holes on both sides."""
        self.free += size
        at = bisect_left(self._starts, start)
        if at < len(self._starts) and start + size == self._starts[at]:
            size += self._sizes[at]
            del self._starts[at], self._sizes[at]
        if at and self._starts[at - 1] + self._sizes[at - 1] == start:
            self._sizes[at - 1] += size
        else:
            self._starts.insert(at, start)
            self._sizes.insert(at, size)

    def clear_from(self, start: int, end: int) -> None:
        """After everything was moved to the front: one hole, from `start` to `end`."""
        self._starts, self._sizes = ([start], [end - start]) if start < end else ([], [])


class Buddy:
    """The buddy system: pieces are powers of two, each the half of one twice as large.

    A piece at `start` of `size` slots has its buddy at `start ^ size`; when both are free they become one
    again. A memory that is no power of two is first cut into such (15,728 = 8,192 + 4,096 + ... + 16).
    Source: Knuth, The Art of Computer Programming 1, 2.5; the PagedAttention paper uses it for its baselines.
    """

    def __init__(self, num_slots: int):
        self.free = num_slots
        self._free: dict[int, set[int]] = {}
        start = 0
        for order in reversed(range(num_slots.bit_length())):
            if num_slots >> order & 1:
                self._free[1 << order] = {start}
                start += 1 << order

    @property
    def largest(self) -> int:
        return max((size for size, starts in self._free.items() if starts), default=0)

    def holes(self) -> list[tuple[int, int]]:
        """(start, size) of each free piece, by address."""
        return sorted((start, size) for size, starts in self._free.items() for start in starts)

    def take(self, size: int) -> int | None:
        """The start of a free piece of `power_of_two(size)` slots, cut from the smallest that is enough."""
        wanted = power_of_two(size)
        found = min((s for s, starts in self._free.items() if starts and s >= wanted), default=None)
        if found is None:
            return None
        start = min(self._free[found])
        self._free[found].remove(start)
        while found > wanted:
            found //= 2
            self._free.setdefault(found, set()).add(start + found)
        self.free -= wanted
        return start

    def give(self, start: int, size: int) -> None:
        """Return a piece that `take(size)` gave; buddies that are both free become one."""
        size = power_of_two(size)
        self.free += size
        while start ^ size in self._free.get(size, ()):
            self._free[size].remove(start ^ size)
            start &= ~size
            size *= 2
        self._free.setdefault(size, set()).add(start)
