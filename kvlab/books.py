"""A block manager's books and all that can be asked of them; `block_manager` has what changes them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kvlab.block_pool import BlockPool
from kvlab.block_table import UNUSED, BlockTable, Slot, TableRows, unknown_request
from kvlab.invariants import check_books

if TYPE_CHECKING:
    from kvlab.reservation import Reservation


class Books:
    """Every request's block table and length, the pool that their blocks come from, and open reservations.

    Rules that hold after every call (`check()` verifies them): free + allocated = all usable blocks; a block
    is allocated exactly when its count is positive; its count is the number of tables that hold it; a table
    has exactly ceil(length / block_size) entries.

    hole: the table entry of a block that was given back before its request ended (`window_manager`): the null
        block, or -1 in a pool without one.
    """

    def __init__(self, pool: BlockPool, block_size: int):
        self.num_blocks = pool.num_blocks
        self.block_size = block_size
        self.hole = UNUSED if pool.null_block is None else pool.null_block
        self._pool = pool
        self._ref_counts = pool.ref_counts
        self._tables: dict[Hashable, BlockTable] = {}
        self._rows = TableRows()
        self._reservations: dict[Hashable, Reservation] = {}

    def translate(self, request_id: Hashable, position: int) -> Slot:
        """The slot of token number `position` (0-based).

        Raises:
            KeyError: unknown request. IndexError: no token has that position, or its block was given back.
        """
        table = self._table(request_id)
        if not 0 <= position < table.length:
            raise IndexError(
                f"request {request_id!r} has {table.length} tokens: no position {position} (the first is 0)"
            )
        logical_block, offset = divmod(position, self.block_size)
        block = table.blocks[logical_block]
        if block == self.hole:
            raise IndexError(
                f"request {request_id!r}: position {position} is behind the window, its block was given back"
            )
        return Slot(block, offset)

    def block_table(self, request_id: Hashable) -> list[int]:
        """The request's physical blocks in logical order, as a copy."""
        return list(self._table(request_id).blocks)

    def length(self, request_id: Hashable) -> int:
        """The number of tokens the request holds."""
        return self._table(request_id).length

    def request_ids(self) -> list[Hashable]:
        """The live requests, oldest first."""
        return list(self._tables)

    def block_table_array(self, request_ids: Sequence[Hashable]) -> np.ndarray:
        """Block tables for a kernel: int32 [S, max_blocks], one row a request, -1 past a row's end."""
        tables = [self._table(request_id) for request_id in request_ids]
        width = max((len(table.blocks) for table in tables), default=0)
        return self._rows.pick([table.row for table in tables], width)  # [S, max_blocks]

    def context_lens(self, request_ids: Sequence[Hashable]) -> np.ndarray:
        """Lengths for a kernel: int32 [S]."""
        return np.array([self._table(request_id).length for request_id in request_ids], dtype=np.int32)  # [S]

    @property
    def num_free(self) -> int:
        """Blocks that can be handed out now."""
        return len(self._pool.free)

    @property
    def num_allocated(self) -> int:
        """Blocks that some table holds; num_free + num_allocated is the number of usable blocks."""
        return self._pool.num_usable - len(self._pool.free)

    def ref_count(self, block: int) -> int:
        """How many tables hold the block."""
        if not 0 <= block < self.num_blocks:
            raise IndexError(f"blocks are 0 to {self.num_blocks - 1}, got {block}")
        return self._ref_counts[block]

    def free_order(self) -> list[int]:
        """The free blocks, next to be handed out first."""
        return list(self._pool.free)

    def check(self) -> None:
        """Verify the rules of the class docstring.

        Raises:
            InvariantError: names the block or request, its holders and counts.
        """
        check_books(self)

    def _held(self, table: BlockTable) -> list[int]:
        """Each block that the table holds, once, in table order."""
        return [block for block in dict.fromkeys(table.blocks) if block != self.hole]

    def _table(self, request_id: Hashable) -> BlockTable:
        table = self._tables.get(request_id)
        if table is None:
            raise unknown_request(request_id)
        return table
