"""Empty slots in the last block and the size of the table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.waste import blocks_for, fragmentation_table, last_block_waste, table_bytes, waste_bound


def test_case_15_never_more_than_the_ceiling():
    assert [blocks_for(n, 16) for n in (0, 1, 15, 16, 17, 8191, 8192, 8193)] == [0, 1, 1, 1, 2, 512, 512, 513]


@given(st.integers(0, 10**6), st.integers(1, 512))
def test_waste_is_exact_and_bounded(length, block_size):
    waste = last_block_waste(length, block_size)
    assert 0 <= waste <= waste_bound(block_size)
    assert (length + waste) % block_size == 0
    assert blocks_for(length, block_size) * block_size == length + waste


def test_the_bound_is_reached():
    assert last_block_waste(1, 16) == last_block_waste(17, 16) == waste_bound(16) == 15
    assert waste_bound(1) == 0


def test_a_table_of_lengths():
    row = fragmentation_table([0, 100], 16, bytes_per_token=57_344)[1]
    assert (row.tokens, row.blocks, row.slots, row.wasted_slots) == (100, 7, 112, 12)
    assert (row.wasted_bytes, row.table_bytes) == (12 * 57_344, 28)
    assert (row.share_of_tokens, row.share_of_slots) == (0.12, 12 / 112)
    empty = fragmentation_table([0], 16)[0]
    assert empty.share_of_slots == empty.share_of_tokens == 0


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="block_size must be at least 1"):
        last_block_waste(10, 0)
    with pytest.raises(ValueError, match="cannot be negative"):
        table_bytes(-1, 16)
    with pytest.raises(ValueError, match="block_size"):
        waste_bound(-1)
