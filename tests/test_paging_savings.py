"""Growing by copy and shared prefixes."""

import pytest

from kvlab.paging_savings import grow_by_copy, shared_prefix


def test_the_first_token_copies_nothing():
    assert grow_by_copy(0, 100) == (0, 100, None)
    assert grow_by_copy(9, 100) == (900, 1900, None)
    assert grow_by_copy(9, 100, bandwidth=450).seconds == 2


def test_growing_token_by_token_moves_the_square_of_the_length():
    moved = sum(grow_by_copy(length, 1).bytes_moved for length in range(1000))
    assert moved == 1000 * 999 // 2


def test_only_whole_blocks_of_a_prefix_are_shared():
    assert shared_prefix(2007, 16, 10, block_size=16).shared_tokens == 2000
    assert shared_prefix(15, 16, 10, block_size=16) == (0, 0, 0, 0)
    assert shared_prefix(100, 1, 10).saved_bytes == 0


@pytest.mark.parametrize("call", [lambda: grow_by_copy(-1, 1), lambda: grow_by_copy(1, 1, bandwidth=0)])
def test_nonsense_costs_are_refused(call):
    with pytest.raises(ValueError, match=r"cannot be negative|above 0"):
        call()


@pytest.mark.parametrize("bad", [(-1, 1, 1, 1), (1, 0, 1, 1), (1, 1, -1, 1), (1, 1, 1, 0)])
def test_nonsense_prefixes_are_refused(bad):
    with pytest.raises(ValueError, match="A shared prefix needs"):
        shared_prefix(*bad)
