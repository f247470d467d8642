"""What every way of giving KV slots to requests has in common: one interface, and one account of the slots.

Each slot of the memory belongs to exactly one of four parts (the parts of figure 2 in the PagedAttention
paper, arXiv:2309.06180):

| part     | the slots that                                                                  |
|----------|---------------------------------------------------------------------------------|
| tokens   | hold a token                                                                    |
| reserved | belong to a request that will fill them later                                   |
| internal | belong to a request that will never fill them                                   |
| external | belong to nobody: free, or lost because the allocator rounds sizes up           |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple


class Account(NamedTuple):
    """The memory's slots by what they are used for; the four parts add up to all slots."""

    tokens: int
    reserved: int
    internal: int
    external: int

    @property
    def total(self) -> int:
        return sum(self)

    @property
    def allocated(self) -> int:
        """Slots that belong to a request."""
        return self.tokens + self.reserved + self.internal

    def shares(self) -> tuple[float, ...]:
        """The four parts as shares of all slots, 0 to 1."""
        return tuple(part / self.total for part in self)


class OutOfSlots(MemoryError):
    """No place for so many slots in one piece. Nothing was changed.

    Attributes `needed`, `free` and `largest` are numbers of slots; `largest` is the largest hole.
    """

    def __init__(self, needed: int, free: int, largest: int):
        self.needed, self.free, self.largest = needed, free, largest
        holes = (
            f"{free} are free, but the largest hole has {largest}" if free >= needed else f"{free} are free"
        )
        super().__init__(f"{needed} slots in one piece needed: {holes}")

    def __reduce__(self):
        return type(self), (self.needed, self.free, self.largest)


@dataclass(slots=True)
class Held:
    """What one request holds: `size` slots from `start` on (None when they are not in one piece).

    tokens: how many slots are filled. total: how many tokens it will have in the end, as far as is known.
    """

    start: int | None
    size: int
    tokens: int
    total: int

    @property
    def reserved(self) -> int:
        """Empty slots that it will fill."""
        return min(self.size, self.total) - self.tokens

    @property
    def internal(self) -> int:
        """Empty slots that it will never fill."""
        return max(0, self.size - self.total)


class Allocator(ABC):
    """Gives slots to requests. Subclasses say how; a call that raises has changed nothing.

    Attributes:
        num_slots: slots of the memory, one a token.
        copies: tokens that were moved so far, to make room.
    """

    name = "allocator"

    def __init__(self, num_slots: int):
        if not isinstance(num_slots, int) or num_slots < 1:
            raise ValueError(f"num_slots must be a whole number of at least 1 slot, got {num_slots!r}")
        self.num_slots = num_slots
        self.copies = 0
        self._held: dict[Hashable, Held] = {}
        self._tokens = self._reserved = self._internal = 0

    def admit(self, request_id: Hashable, prompt: int, output: int = 0) -> None:
        """Place a new request with its `prompt` tokens; `output` tokens are to come.

        Only some allocators use `output` to decide; all use it to tell reserved slots from internal ones.

        Raises:
            MemoryError: it does not fit now (`OutOfSlots`, or `OutOfBlocks` for the paged one).
            ValueError: the id is live, a length is negative, or the request can never fit.
        """
        if request_id in self._held:
            raise ValueError(f"request {request_id!r} is live: release it first")
        problem = self.problem(prompt, output)
        if problem:
            raise ValueError(f"request {request_id!r}: {problem}")
        held = self._place(request_id, prompt, output)
        self._held[request_id] = held
        self._count(held, 1)

    def append(self, request_id: Hashable) -> None:
        """One more token. KeyError for an unknown request, MemoryError when there is no slot for it."""
        held = self._request(request_id)
        if held.tokens == held.size:
            self._grow(request_id, held)
        held.tokens += 1
        self._tokens += 1
        if held.tokens <= held.total:
            self._reserved -= 1
        else:
            held.total = held.tokens
            self._internal -= 1

    def release(self, request_id: Hashable) -> None:
        """Forget the request; its slots are free again. Raises KeyError for an unknown request."""
        held = self._request(request_id)
        self._give_back(request_id, held)
        del self._held[request_id]
        self._count(held, -1)

    def problem(self, prompt: int, output: int) -> str | None:
        """Why such a request could not fit even into an empty memory; None when it could."""
        if prompt < 1 or output < 0:
            return f"a prompt has at least 1 token and an output at least 0, got {prompt} and {output}"
        needed = self._slots_at_most(prompt, output)
        if needed > self.num_slots:
            return f"it needs {needed} slots, the memory has {self.num_slots}: it can never fit"
        return None

    def account(self) -> Account:
        """Where the slots are now; costs the same however many requests there are."""
        used = self._tokens + self._reserved + self._internal
        return Account(self._tokens, self._reserved, self._internal, self.num_slots - used)

    def request_ids(self) -> list[Hashable]:
        """The live requests, oldest first."""
        return list(self._held)

    def held(self, request_id: Hashable) -> Held:
        """What the request holds: start, size, tokens, total. Read it, do not change it."""
        return self._request(request_id)

    def check(self) -> None:
        """Raise AssertionError unless the account equals a fresh count and no two requests overlap."""
        fresh = [
            sum(getattr(h, part) for h in self._held.values()) for part in ("tokens", "reserved", "internal")
        ]
        counted = list(self.account()[:3])
        assert counted == fresh, f"the account says {counted}, a fresh count of all requests {fresh}"
        assert min(self.account()) >= 0, f"a part of the account is negative: {self.account()}"
        end, last = 0, None
        for who, held in sorted(self._held.items(), key=lambda item: item[1].start or 0):
            assert held.tokens <= held.size, f"{who!r} holds {held.tokens} tokens in {held.size} slots"
            if held.start is None:
                continue
            assert held.start >= end, f"{who!r} begins at slot {held.start}, but {last!r} ends at {end}"
            end, last = held.start + held.size, who
        assert end <= self.num_slots, f"{last!r} ends at slot {end} of {self.num_slots}"

    def _count(self, held: Held, sign: int) -> None:
        self._tokens += sign * held.tokens
        self._reserved += sign * held.reserved
        self._internal += sign * held.internal

    def _request(self, request_id: Hashable) -> Held:
        held = self._held.get(request_id)
        if held is None:
            raise KeyError(f"no request {request_id!r}: it was never admitted, or it was released")
        return held

    @abstractmethod
    def _slots_at_most(self, prompt: int, output: int) -> int:
        """Slots that such a request holds at its largest."""

    @abstractmethod
    def _place(self, request_id: Hashable, prompt: int, output: int) -> Held:
        """Slots for a new request's prompt. MemoryError when there is no place for it now."""

    @abstractmethod
    def _grow(self, request_id: Hashable, held: Held) -> None:
        """Make `held.size` larger than `held.tokens`, and keep the account right."""

    @abstractmethod
    def _give_back(self, request_id: Hashable, held: Held) -> None:
        """The request's slots are free again."""
