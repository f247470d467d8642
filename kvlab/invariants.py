"""Every rule of the block manager, checked on its real books."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from kvlab.block_pool import InvariantError
from kvlab.block_table import BlockTable

if TYPE_CHECKING:
    from kvlab.block_manager import BlockManager


def check_books(manager: BlockManager) -> None:
    """Raise `InvariantError`, naming the block or request, its holders and counts, unless all rules hold."""
    holders: dict[int, list[Hashable]] = {}
    for request_id, table in manager._tables.items():
        for block in dict.fromkeys(table.blocks):
            holders.setdefault(block, []).append(request_id)
        _check_table(manager, request_id, table)
    for reservation in set(manager._reservations.values()):
        for block in reservation.held.elements():
            holders.setdefault(block, []).append("open reservation")
    manager._pool.check(holders)


def _check_table(manager: BlockManager, request_id: Hashable, table: BlockTable) -> None:
    reservation = manager._reservations.get(request_id)
    tokens = table.length + (reservation.counts[request_id] if reservation else 0)
    needed = -(-tokens // manager.block_size)
    if len(table.blocks) != needed:
        raise InvariantError(
            f"request {request_id!r}: {tokens} tokens need {needed} blocks, table {table.blocks}"
        )
    row = manager._rows.pick([table.row], len(table.blocks))[0].tolist()
    if row != table.blocks:
        raise InvariantError(f"request {request_id!r}: table {table.blocks}, but the kernel's row says {row}")
