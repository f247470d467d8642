"""What paging still wastes: the empty slots of each request's last block, and the block table itself."""

from typing import NamedTuple

from kvlab.layer_kinds import ceil_div


def _check(length: int, block_size: int) -> None:
    if length < 0:
        raise ValueError(f"A length cannot be negative, but is {length}.")
    if block_size < 1:
        raise ValueError(f"block_size must be at least 1 token, not {block_size}.")


def blocks_for(length: int, block_size: int) -> int:
    """Blocks that `length` tokens need, and never one more: ceil(length / B).

    Taking one more near the limit was a real bug (vLLM #10730).
    """
    _check(length, block_size)
    return ceil_div(length, block_size)


def last_block_waste(length: int, block_size: int) -> int:
    """Empty slots in the last block, exactly: ceil(length / B) * B - length; 0 when it is full."""
    return blocks_for(length, block_size) * block_size - length


def waste_bound(block_size: int) -> int:
    """The most slots that one request can waste: B - 1, whatever its length."""
    _check(0, block_size)
    return block_size - 1


def table_bytes(length: int, block_size: int, *, num_tables: int = 1, entry_bytes: int = 4) -> int:
    """Bytes of a request's block table: one int32 a block, times the number of tables.

    One table serves all layers of a group. `num_tables=num_layers` gives the cost if each layer had its own.
    """
    return blocks_for(length, block_size) * entry_bytes * num_tables


class WasteRow(NamedTuple):
    """One length in a fragmentation table. Shares are of the tokens and of the slots held (0 to 1)."""

    tokens: int
    blocks: int
    slots: int
    wasted_slots: int
    share_of_tokens: float
    share_of_slots: float
    wasted_bytes: int
    table_bytes: int


def fragmentation_table(lengths, block_size: int, bytes_per_token: int = 0) -> list[WasteRow]:
    """The waste of requests of these lengths: a row each, in the order given."""
    return [_row(length, block_size, bytes_per_token) for length in lengths]


def _row(length: int, block_size: int, bytes_per_token: int) -> WasteRow:
    blocks = blocks_for(length, block_size)
    wasted = last_block_waste(length, block_size)
    return WasteRow(
        tokens=length,
        blocks=blocks,
        slots=blocks * block_size,
        wasted_slots=wasted,
        share_of_tokens=wasted / length if length else 0.0,
        share_of_slots=wasted / (blocks * block_size) if blocks else 0.0,
        wasted_bytes=wasted * bytes_per_token,
        table_bytes=table_bytes(length, block_size),
    )
