"""The pool by itself: order of reuse, counts, the null block, and what it refuses."""

import pickle

import pytest

from kvlab import BlockPool, InvariantError, OutOfBlocks


def take(pool: BlockPool, count: int) -> list[int]:
    return [pool.take("A") for _ in range(count)]


def test_blocks_are_handed_out_in_order_and_reused_from_the_tail():
    pool = BlockPool(4)
    assert take(pool, 3) == [0, 1, 2]
    pool.drop([1, 0], "A")
    assert list(pool.free) == [3, 1, 0]


def test_lru_puts_the_last_block_of_a_table_at_the_head():
    pool = BlockPool(6, reuse="lru")
    pool.drop(take(pool, 3), "A")
    assert list(pool.free) == [2, 1, 0, 3, 4, 5]


def test_a_block_named_twice_is_queued_once():
    """vLLM issue 42571: count 2, free([b, b]) must grow the free list by one."""
    pool = BlockPool(4)
    (block,) = take(pool, 1)
    pool.share([block], "B")
    pool.drop([block, block], "A")
    assert list(pool.free) == [1, 2, 3, block]


def test_a_double_free_is_refused_and_changes_nothing():
    pool = BlockPool(4)
    first, second = take(pool, 2)
    with pytest.raises(InvariantError, match="block 1 has 1 holders, 'A' drops 2: double free"):
        pool.drop([first, second, second], "A")
    assert pool.ref_counts == [1, 1, 0, 0]
    assert list(pool.free) == [2, 3]


def test_a_free_block_cannot_be_shared():
    pool = BlockPool(2)
    with pytest.raises(InvariantError, match="block 1 is free"):
        pool.share([1], "B")


def test_put_back_restores_the_order_exactly():
    pool = BlockPool(5, free_order=[4, 2, 0, 1, 3])
    taken = take(pool, 3)
    pool.put_back(taken, "A")
    assert list(pool.free) == [4, 2, 0, 1, 3]
    assert pool.ref_counts == [0] * 5


def test_the_null_block_is_never_handed_out():
    pool = BlockPool(3, null_block=True)
    assert take(pool, 2) == [1, 2]
    with pytest.raises(OutOfBlocks) as refused:
        pool.take("A")
    assert (refused.value.needed, refused.value.free, refused.value.total) == (1, 0, 2)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"num_blocks": 0}, "at least 1 usable block, got 0"),
        ({"num_blocks": 2.5}, "got 2.5"),
        # vLLM issue 27181: a pool of one block started and served nothing.
        ({"num_blocks": 1, "null_block": True}, "besides the null block, got 1"),
        ({"num_blocks": 4, "reuse": "lifo"}, "fifo, lru, got 'lifo'"),
        ({"num_blocks": 3, "free_order": [0, 1, 1]}, r"blocks 0\.\.2 once, got \[0, 1, 1\]"),
        ({"num_blocks": 3, "free_order": [0, 1, 2], "null_block": True}, r"blocks 1\.\.2 once"),
    ],
)
def test_a_pool_that_cannot_work_is_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        BlockPool(**arguments)


def test_out_of_blocks_says_whether_waiting_helps():
    assert "release a request" in str(OutOfBlocks(3, 1, 8))
    assert "can never serve this" in str(OutOfBlocks(9, 1, 8))
    assert str(pickle.loads(pickle.dumps(OutOfBlocks(9, 1, 8)))) == str(OutOfBlocks(9, 1, 8))
    assert isinstance(OutOfBlocks(1, 0, 1), MemoryError)


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (lambda pool: pool.free.append(0), "block 0: count 1, held by .'A'., on the free list"),
        (lambda pool: pool.free.remove(2), "block 2: count 0, held by .., not on the free list"),
        (lambda pool: pool.ref_counts.__setitem__(1, 2), "block 1: count 2, held by .'A'."),
    ],
)
def test_check_names_the_block_its_holders_and_its_count(break_it, says):
    pool = BlockPool(4)
    take(pool, 2)
    pool.check({0: ["A"], 1: ["A"]})
    break_it(pool)
    with pytest.raises(InvariantError, match=says):
        pool.check({0: ["A"], 1: ["A"]})
