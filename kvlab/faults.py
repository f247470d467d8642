"""Faults planted on purpose: block managers and caches, each with one classic bug and its symptom.

For the clinic and for the tests of the sentinel audit.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from kvlab.block_manager import BlockManager
from kvlab.block_table import BlockCopy, Slot
from kvlab.prefix_cache import ExtraKeys
from kvlab.reservation import Reservation


class Patient:
    """A block manager of the smallest interface, right in all that a subclass does not break.

    Class attributes: `name`, and `symptom`, one sentence on what an audit shows.
    Arguments are those of `BlockManager`.
    """

    name = "healthy"
    symptom = "Nothing is wrong."

    def __init__(self, num_blocks: int, block_size: int, **options: Any):
        self.num_blocks, self.block_size = num_blocks, block_size
        self.right = BlockManager(num_blocks, block_size, **options)

    def append_slot(self, request_id: Hashable) -> Slot:
        slot = self.right.append_slot(request_id)
        position = self.right.length(request_id) - 1
        return Slot(*self.place(self.right.block_table(request_id), position), slot.copied_from)

    def place(self, block_table: Sequence[int], position: int) -> tuple[int, int]:
        """Block and offset of a token."""
        return block_table[position // self.block_size], position % self.block_size

    def fork(self, parent_id: Hashable, child_id: Hashable) -> None:
        self.right.fork(parent_id, child_id)

    def release(self, request_id: Hashable) -> None:
        self.right.release(request_id)

    def block_table(self, request_id: Hashable) -> list[int]:
        return self.right.block_table(request_id)

    def length(self, request_id: Hashable) -> int:
        return self.right.length(request_id)

    def free_order(self) -> list[int]:
        return self.right.free_order()

    def request_ids(self) -> list[Hashable]:
        return self.right.request_ids()

    def check(self) -> None:
        self.right.check()


class OffByOneBlock(Patient):
    name = "off-by-one block"
    symptom = "The first token of each new block overwrites the first token of the block before it."

    def place(self, block_table: Sequence[int], position: int) -> tuple[int, int]:
        return block_table[(position - 1) // self.block_size], position % self.block_size


class WrongRemainder(Patient):
    name = "wrong remainder"
    symptom = "Right block, wrong slot: tokens are turned by one inside their block."

    def place(self, block_table: Sequence[int], position: int) -> tuple[int, int]:
        return block_table[position // self.block_size], (position + 1) % self.block_size


class LateLength(Patient):
    name = "late length"
    symptom = "Every token overwrites the one before it, and the last slot is never written."

    def place(self, block_table: Sequence[int], position: int) -> tuple[int, int]:
        return super().place(block_table, max(position - 1, 0))


class LostCopy(Patient):
    name = "lost copy"
    symptom = "After a fork appends, the tokens before it in that block are missing."

    def append_slot(self, request_id: Hashable) -> Slot:
        return super().append_slot(request_id)._replace(copied_from=None)


class EarlyFree(Patient):
    name = "early free"
    symptom = "After a fork's release its relatives find another request's tokens in their blocks."

    def release(self, request_id: Hashable) -> None:
        counts = self.right._pool.ref_counts
        shared = [block for block in self.right.block_table(request_id) if counts[block] > 1]
        for block in shared:
            counts[block] = 1  # as if nobody else held it: the release frees it
        self.right.release(request_id)
        for block in shared:
            counts[block] = 1  # the others go on as before


class LostDecrement(Patient):
    name = "lost decrement"
    symptom = "Every token is right, but the block that a copy came from is never free again."

    def append_slot(self, request_id: Hashable) -> Slot:
        slot = super().append_slot(request_id)
        if slot.copied_from is not None:
            self.right._pool.ref_counts[slot.copied_from] += 1
        return slot


class UnfinishedHit(BlockManager):
    """Offers a new request's full blocks to others when they are reserved, not when their KV is written."""

    name = "hit on an unfinished block"
    symptom = "After a step failed, a request finds blocks in the prefix cache that nobody ever wrote."

    def reserve(
        self,
        tokens: Mapping[Hashable, Sequence[int]],
        *,
        keys: Mapping[Hashable, ExtraKeys] | None = None,
    ) -> Reservation:
        reservation = super().reserve(tokens, keys=keys)
        for request_id, ids in tokens.items():
            if self.length(request_id) == 0:
                links = self.prefix_cache.links(ids, (keys or {}).get(request_id, ExtraKeys()), len(ids))
                for block, link in zip(self.block_table(request_id), links, strict=False):
                    self.prefix_cache.add(block, link)
        return reservation


class FaultyCache:
    """A cache that is the wrapped one's in all that a subclass does not break."""

    def __init__(self, cache: Any):
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)


class LateCopy(FaultyCache):
    """A cache that carries out each step's copies one step late."""

    name = "copy after reuse"
    symptom = "A copy brings what was written into the source block after it was handed out again."

    def __init__(self, cache: Any):
        super().__init__(cache)
        self._waiting: list[BlockCopy] = []

    def copy(self, copies: Iterable[BlockCopy]) -> None:
        self._cache.copy(self._waiting)
        self._waiting = list(copies)


class ShortCopy(FaultyCache):
    """A cache that copies one slot too few."""

    name = "wrong slot count"
    symptom = "In every copy the last token before the fork is missing."

    def copy(self, copies: Iterable[BlockCopy]) -> None:
        shorter = [copy._replace(num_slots=copy.num_slots - 1) for copy in copies]
        self._cache.copy([copy for copy in shorter if copy.num_slots])


class SwappedLayers(FaultyCache):
    """A cache whose `write` confuses layers 0 and 1."""

    name = "swapped layers"
    symptom = "Every slot holds the right token, but of the other layer."

    def write(self, layer: int, slots: Any, k: Any, v: Any) -> None:
        self._cache.write({0: 1, 1: 0}.get(layer, layer), slots, k, v)


FAULTY_MANAGERS = {
    fault.name: fault for fault in (OffByOneBlock, WrongRemainder, LostCopy, EarlyFree, LateLength)
}

SHARING_FAULTS = {
    fault.name: fault for fault in (LostDecrement, EarlyFree, LateCopy, ShortCopy, LostCopy, UnfinishedHit)
}
