"""Block tables: where a request's tokens live, and all tables as one array for the kernel."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from kvlab.prefix_cache import TokenChain

UNUSED = -1


class Slot(NamedTuple):
    """The place of one token's K and V: a physical block and an offset inside it.

    copied_from: the block whose first `offset` slots must be copied into `block` before the token is
    written (copy-on-write), else None.
    """

    block: int
    offset: int
    copied_from: int | None = None


class BlockCopy(NamedTuple):
    """Copy the first `num_slots` slots of block `source` to block `destination`, K and V, in every layer."""

    source: int
    destination: int
    num_slots: int


class Growth(NamedTuple):
    """What an append gave: one slot a token, the copies to carry out before anything is written, and how
    many leading tokens need no computing since their blocks were found in a prefix cache."""

    slots: list[Slot]
    copies: list[BlockCopy]
    cached: int = 0


class BlockTable:
    """One request's physical blocks in logical order, its length in tokens, its row in `TableRows`, and with
    prefix caching the chain of its blocks' hashes. holes: its leading blocks that were given back."""

    __slots__ = ("blocks", "chain", "holes", "length", "row")

    def __init__(self, blocks: list[int], length: int, row: int, chain: TokenChain | None, holes: int = 0):
        self.blocks = blocks
        self.length = length
        self.row = row
        self.chain = chain
        self.holes = holes


class TableRows:
    """Every live block table as a row of one int32 array, kept up to date as blocks are handed out.

    A decode kernel wants block_tables [S, max_blocks] each step. Building it from Python lists costs
    milliseconds; picking rows of an array that already exists costs microseconds.
    """

    def __init__(self, rows: int = 16, columns: int = 16):
        self._array = np.full((rows, columns), UNUSED, dtype=np.int32)  # [rows, columns]
        self._spare = list(range(rows))[::-1]

    def claim(self) -> int:
        """A row of its own for a new table."""
        if not self._spare:
            rows = len(self._array)
            self._resize(rows * 2, self._array.shape[1])
            self._spare = list(range(rows, rows * 2))[::-1]
        return self._spare.pop()

    def give_up(self, row: int) -> None:
        """Blank the row and keep it for the next table."""
        self._array[row] = UNUSED
        self._spare.append(row)

    def set(self, row: int, column: int, block: int) -> None:
        """Set one entry."""
        if column >= self._array.shape[1]:
            self._resize(len(self._array), self._array.shape[1] * 2)
        self._array[row, column] = block

    def write(self, row: int, column: int, blocks: list[int]) -> None:
        """Set the row's entries from `column` on."""
        end = column + len(blocks)
        if end > self._array.shape[1]:
            self._resize(len(self._array), max(end, self._array.shape[1] * 2))
        self._array[row, column:end] = blocks

    def truncate(self, row: int, length: int) -> None:
        """Blank the row's entries from `length` on."""
        self._array[row, length:] = UNUSED

    def pick(self, rows: list[int], width: int) -> np.ndarray:
        """The given rows, first `width` columns, as a copy [S, width]."""
        return self._array[rows, :width]

    def _resize(self, rows: int, columns: int) -> None:
        grown = np.full((rows, columns), UNUSED, dtype=np.int32)
        grown[: self._array.shape[0], : self._array.shape[1]] = self._array
        self._array = grown


def unknown_request(request_id: Hashable) -> KeyError:
    """The error for an id that holds no blocks, ready to raise."""
    return KeyError(f"no request {request_id!r}: it was never appended to, or it was released")
