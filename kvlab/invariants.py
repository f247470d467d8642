"""Every rule of the block manager, checked on its real books."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from kvlab.block_pool import InvariantError
from kvlab.block_table import BlockTable

if TYPE_CHECKING:
    from kvlab.books import Books


def check_books(books: Books) -> None:
    """Raise `InvariantError`, naming the block or request, its holders and counts, unless all rules hold."""
    books._pool.check(checked_holders(books))


def checked_holders(books: Books) -> dict[int, list[Hashable]]:
    """Who holds each block by these books, after a look at every table; the counts are not compared."""
    holders: dict[int, list[Hashable]] = {}
    for request_id, table in books._tables.items():
        for block in books._held(table):
            holders.setdefault(block, []).append(request_id)
        _check_table(books, request_id, table)
    for reservation in set(books._reservations.values()):
        for block in reservation.held.elements():
            holders.setdefault(block, []).append("open reservation")
    return holders


def _check_table(books: Books, request_id: Hashable, table: BlockTable) -> None:
    reservation = books._reservations.get(request_id)
    tokens = table.length + (reservation.counts[request_id] if reservation else 0)
    needed = -(-tokens // books.block_size)
    if len(table.blocks) != needed:
        raise InvariantError(
            f"request {request_id!r}: {tokens} tokens need {needed} blocks, table {table.blocks}"
        )
    row = books._rows.pick([table.row], len(table.blocks))[0].tolist()
    if row != table.blocks:
        raise InvariantError(f"request {request_id!r}: table {table.blocks}, but the kernel's row says {row}")
