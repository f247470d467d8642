"""Faults planted on purpose: wrong translations, and managers and a cache with one classic bug each.

For notebooks, the clinic and the tests of the sentinel audit. Each says in `symptom` what one sees.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from kvlab.block_manager import BlockManager
from kvlab.block_table import Slot

# -- one wrong line in translate(block_table, block_size, position) -> (block, offset) ---------------------


def off_by_one_block(block_table: Sequence[int], block_size: int, position: int) -> tuple[int, int]:
    """Wrong `//`: the first token of a block goes to the block before, position 0 to the table's last one."""
    return block_table[(position - 1) // block_size], position % block_size


def wrong_remainder(block_table: Sequence[int], block_size: int, position: int) -> tuple[int, int]:
    """Wrong `%`: the right block, but every token one slot further, the last slot's token at the front."""
    return block_table[position // block_size], (position + 1) % block_size


def early_length(block_table: Sequence[int], block_size: int, position: int) -> tuple[int, int]:
    """The length counts the token before its slot is computed: all one slot too far, slot 0 stays empty.

    The last token of a full table then has no slot: IndexError.
    """
    return block_table[(position + 1) // block_size], (position + 1) % block_size


def late_length(block_table: Sequence[int], block_size: int, position: int) -> tuple[int, int]:
    """The length lags one token behind: each token lands on the one before it, the last slot stays empty."""
    stale = max(position - 1, 0)
    return block_table[stale // block_size], stale % block_size


TRANSLATE_FAULTS = {
    "wrong //": off_by_one_block,
    "wrong %": wrong_remainder,
    "length too early": early_length,
}


# -- managers ----------------------------------------------------------------------------------------------


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
        return off_by_one_block(block_table, self.block_size, position)


class WrongRemainder(Patient):
    name = "wrong remainder"
    symptom = "Right block, wrong slot: tokens are turned by one inside their block."

    def place(self, block_table: Sequence[int], position: int) -> tuple[int, int]:
        return wrong_remainder(block_table, self.block_size, position)


class LateLength(Patient):
    name = "late length"
    symptom = "Every token overwrites the one before it, and the last slot is never written."

    def place(self, block_table: Sequence[int], position: int) -> tuple[int, int]:
        return late_length(block_table, self.block_size, position)


class LostCopy(Patient):
    name = "lost copy"
    symptom = "After a fork appends, the tokens before it in that block are missing."

    def append_slot(self, request_id: Hashable) -> Slot:
        return super().append_slot(request_id)._replace(copied_from=None)


class EarlyFree(Patient):
    name = "early free"
    symptom = "After a fork's release its relatives find another request's tokens in their blocks."

    def release(self, request_id: Hashable) -> None:
        pool = self.right._pool
        shared = [block for block in self.right.block_table(request_id) if self.right.ref_count(block) > 1]
        self.right.release(request_id)
        # The count is not asked: the blocks are handed out again while others still hold them.
        (pool.free.extend if pool.reuse == "fifo" else pool.free.extendleft)(shared)


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
