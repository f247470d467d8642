"""Faults planted on purpose: block managers and a cache, each with one classic bug and its symptom.

For the clinic and for the tests of the sentinel audit.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from kvlab.block_manager import BlockManager
from kvlab.block_table import Slot


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


class SwappedLayers:
    """A cache whose `write` confuses layers 0 and 1; everything else is the wrapped cache's own."""

    name = "swapped layers"
    symptom = "Every slot holds the right token, but of the other layer."

    def __init__(self, cache: Any):
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def write(self, layer: int, slots: Any, k: Any, v: Any) -> None:
        self._cache.write({0: 1, 1: 0}.get(layer, layer), slots, k, v)


FAULTY_MANAGERS = {
    fault.name: fault for fault in (OffByOneBlock, WrongRemainder, LostCopy, EarlyFree, LateLength)
}
