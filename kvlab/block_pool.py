"""Physical blocks: which are free, in what order they are handed out, and how many tables hold each.

The pool knows nothing of requests' lengths or tables; `BlockManager` builds those on top of it.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from kvlab.prefix_cache import PrefixCache

REUSE_ORDERS = ("fifo", "lru")
NULL_BLOCK = 0


class OutOfBlocks(MemoryError):
    """Not enough free blocks. Nothing was changed.

    Attributes `needed`, `free` and `total` are numbers of blocks; `total` leaves the null block out.
    """

    def __init__(self, needed: int, free: int, total: int):
        self.needed, self.free, self.total = needed, free, total
        hint = (
            "release a request or wait for one to finish"
            if needed <= total
            else "the pool can never serve this: make it larger or ask for fewer tokens"
        )
        super().__init__(f"{needed} block{'s' * (needed != 1)} needed, {free} of {total} free: {hint}")

    def __reduce__(self):
        return type(self), (self.needed, self.free, self.total)


class InvariantError(AssertionError):
    """The book-keeping contradicts itself; the message names the block, its holders and its count."""


class Event(NamedTuple):
    """One change to one block.

    kind: "allocate" (left the free list), "share" (one more table holds it), "copy" (it was allocated to
    receive a copy; follows its "allocate"), "free" (rejoined the free list), "evict" (lost cached content).
    """

    kind: str
    block: int
    request_id: Hashable


class FreeQueue(OrderedDict):
    """The free blocks in the order in which they will be handed out.

    A deque could not take a block out of the middle, which happens when the content of a free block is
    found again; here both ends and the middle cost O(1).
    """

    def popleft(self) -> int:
        """Take the head."""
        return self.popitem(last=False)[0]

    def append(self, block: int) -> None:
        """Join the tail."""
        self[block] = None

    def appendleft(self, block: int) -> None:
        """Join the head."""
        self[block] = None
        self.move_to_end(block, last=False)

    def remove(self, block: int) -> None:
        """Leave from wherever it is."""
        del self[block]


class BlockPool:
    """Free list and reference counts over `num_blocks` physical blocks.

    Args:
        num_blocks: how many blocks there are; their ids are 0 .. num_blocks - 1.
        reuse: "fifo": dropped blocks join the tail of the free list in the order given.
            "lru": they are freed last one first; those with cached content join the tail, the others the
            head, as vLLM 0.33 does.
        null_block: keep block 0 out of circulation, as vLLM does: it is never handed out and never counted.
        free_order: the order in which blocks are first handed out: a permutation of the usable ids.
        on_event: called with each `Event` once the operation that caused it is complete.
        prefix_cache: what cached content the blocks hold; a block loses it when it is handed out.

    Raises:
        ValueError: no usable block, an unknown `reuse`, or a `free_order` that is not a permutation.
    """

    def __init__(
        self,
        num_blocks: int,
        *,
        reuse: str = "fifo",
        null_block: bool = False,
        free_order: Sequence[int] | None = None,
        on_event: Callable[[Event], None] | None = None,
        prefix_cache: PrefixCache | None = None,
    ):
        first = NULL_BLOCK + 1 if null_block else 0
        if not isinstance(num_blocks, int) or num_blocks - first < 1:
            why = " besides the null block" if null_block else ""
            raise ValueError(f"num_blocks must leave at least 1 usable block{why}, got {num_blocks!r}")
        if reuse not in REUSE_ORDERS:
            raise ValueError(f"reuse must be one of {', '.join(REUSE_ORDERS)}, got {reuse!r}")
        usable = range(first, num_blocks)
        order = list(usable) if free_order is None else list(free_order)
        if sorted(order) != list(usable):
            raise ValueError(
                f"free_order must name each of the blocks {first}..{num_blocks - 1} once, got {order}"
            )
        self.num_blocks = num_blocks
        self.num_usable = len(order)
        self.reuse = reuse
        self.null_block = NULL_BLOCK if null_block else None
        self.ref_counts = [0] * num_blocks
        self.free = FreeQueue.fromkeys(order)
        self.prefix_cache = prefix_cache
        self._on_event = on_event
        self._pending: list[Event] = []

    def require(self, needed: int) -> None:
        """Raise `OutOfBlocks` unless `needed` blocks are free."""
        if needed > len(self.free):
            raise OutOfBlocks(needed, len(self.free), self.num_usable)

    def take(self, request_id: Hashable) -> int:
        """Hand out the block at the head of the free list, with a count of 1."""
        if not self.free:
            raise OutOfBlocks(1, 0, self.num_usable)
        block = self.free.popleft()
        self.ref_counts[block] = 1
        if self.prefix_cache is not None and self.prefix_cache.evict(block):
            self.note("evict", block, request_id)
        self.note("allocate", block, request_id)
        return block

    def share(self, blocks: Iterable[int], request_id: Hashable) -> None:
        """Count one more holder for each of `blocks`."""
        for block in blocks:
            if not self.ref_counts[block]:
                raise InvariantError(f"block {block} is free: it cannot be shared with {request_id!r}")
            self.ref_counts[block] += 1
            self.note("share", block, request_id)

    def touch(self, blocks: Iterable[int], request_id: Hashable) -> None:
        """One more holder for each of `blocks`, found in the prefix cache; free ones leave the free list."""
        for block in blocks:
            if not self.ref_counts[block]:
                self.free.remove(block)
                self.note("allocate", block, request_id)
            else:
                self.note("share", block, request_id)
            self.ref_counts[block] += 1

    def drop(self, blocks: Sequence[int], request_id: Hashable) -> None:
        """Count one holder less for each of `blocks`, given in table order; those left with none are freed.

        A block named twice loses two holders and is queued once (vLLM issue 42571).

        Raises:
            InvariantError: a block has fewer holders than would be dropped.
        """
        for block, times in Counter(blocks).items():
            if times > self.ref_counts[block]:
                raise InvariantError(
                    f"block {block} has {self.ref_counts[block]} holders, {request_id!r} drops {times}:"
                    " double free"
                )
        freed = []
        for block in blocks:
            self.ref_counts[block] -= 1
            if not self.ref_counts[block]:
                freed.append(block)
        self._enqueue(freed)
        for block in freed:
            self.note("free", block, request_id)

    def _enqueue(self, freed: list[int]) -> None:
        if self.reuse == "fifo":
            for block in freed:
                self.free.append(block)
            return
        cached = self.prefix_cache or ()
        for block in reversed(freed):
            if block in cached:
                self.free.append(block)
        # appendleft reverses, so the last block of the table becomes the new head.
        for block in freed:
            if block not in cached:
                self.free.appendleft(block)

    def put_back(self, blocks: Sequence[int], request_id: Hashable) -> None:
        """Undo `take` for `blocks`, given in the order taken: they head the free list as they did before."""
        for block in reversed(blocks):
            self.ref_counts[block] = 0
            self.free.appendleft(block)
            self.note("free", block, request_id)

    def restore_order(self, order: Sequence[int]) -> None:
        """Put the free list back into `order`, if it still holds the same blocks."""
        if order and self.free.keys() == set(order):
            self.free = FreeQueue.fromkeys(order)

    def note(self, kind: str, block: int, request_id: Hashable) -> None:
        """Keep an event for `deliver`; costs nothing when nobody listens."""
        if self._on_event is not None:
            self._pending.append(Event(kind, block, request_id))

    def deliver(self) -> None:
        """Tell the listener of all that happened; called when an operation is complete.

        What the listener raises reaches the caller of that operation, which has taken effect all the same.
        """
        if self._pending:
            events, self._pending = self._pending, []
            for event in events:
                self._on_event(event)

    def check(self, holders: dict[int, list[Hashable]]) -> None:
        """Raise `InvariantError` unless free list, counts and `holders` (block -> who holds it) agree."""
        for block, count in enumerate(self.ref_counts):
            who = holders.get(block, [])
            on_list = block in self.free
            place = "on the free list" if on_list else "not on the free list"
            named = f"block {block}: count {count}, held by {who}, {place}"
            if count != len(who):
                raise InvariantError(f"{named}: the count must equal the number of holders")
            if block == self.null_block:
                if count or on_list:
                    raise InvariantError(f"{named}: the null block is never counted and never free")
            elif on_list != (count == 0):
                raise InvariantError(f"{named}: a block is either free or held")
