"""The paged block manager behind the interface of the contiguous allocators, so that they can be compared."""

from __future__ import annotations

from collections.abc import Hashable

from kvlab.allocator import Allocator, Held
from kvlab.block_manager import BlockManager


class PagedAllocator(Allocator):
    """Blocks on demand: at most block_size - 1 slots of a request are empty, and no slot is out of reach.

    Slots that do not fill a whole block are left out, as an engine does: `num_slots` is a multiple of
    `block_size`. The prompt is placed whole or not at all (`OutOfBlocks`).

    Args:
        num_slots: slots of the memory; rounded down to whole blocks.
        block_size: tokens a block.
        manager: any block manager with append, append_slot and release; one of these sizes if None.
    """

    name = "paged"

    def __init__(self, num_slots: int, block_size: int = 16, *, manager=None):
        self.manager = manager or BlockManager(num_slots // block_size, block_size)
        self.block_size = self.manager.block_size
        super().__init__(self.manager.num_blocks * self.block_size)

    def _slots_at_most(self, prompt: int, output: int) -> int:
        return self._whole_blocks(prompt + output)

    def _place(self, request_id: Hashable, prompt: int, output: int) -> Held:
        self.manager.append(request_id, prompt)
        return Held(None, self._whole_blocks(prompt), prompt, prompt + output)

    def append(self, request_id: Hashable) -> None:
        """One more token, in the last block or in a new one. KeyError, or OutOfBlocks without a change."""
        self._request(request_id)
        self.manager.append_slot(request_id)
        super().append(request_id)

    def _grow(self, request_id: Hashable, held: Held) -> None:
        self._count(held, -1)
        held.size += self.block_size
        self._count(held, 1)

    def _give_back(self, request_id: Hashable, held: Held) -> None:
        self.manager.release(request_id)

    def _whole_blocks(self, tokens: int) -> int:
        return -(-tokens // self.block_size) * self.block_size
