"""Prefix caching by example: vLLM's worked cases, reported bugs, collisions, salts, rollback."""

import pytest

from kvlab import BlockManager, OutOfBlocks
from kvlab.prefix_cache import ExtraKeys, PrefixCache, PrefixStats, toy_hash


def caching(num_blocks: int = 11, block_size: int = 16, **more) -> BlockManager:
    return BlockManager(num_blocks, block_size, prefix_caching=True, null_block=True, **more)


def tokens(count: int, first: int = 0) -> list[int]:
    return list(range(first, first + count))


@pytest.mark.parametrize(("length", "hit"), [(16, 0), (17, 16), (32, 16), (33, 32), (48, 32), (49, 48)])
def test_a_hit_is_whole_blocks_and_leaves_a_token_to_compute(length, hit):
    """32 tokens all cached hit 16 (vLLM issues 3239 and 11186)."""
    manager = caching()
    assert manager.append("A", tokens(64)).cached == 0
    assert manager.append("B", tokens(length)).cached == hit


def test_the_queue_after_a_request_of_55_tokens():
    manager = caching()
    manager.append("A", tokens(55))
    assert manager.block_table("A") == [1, 2, 3, 4]
    manager.release("A")
    assert manager.free_order() == [4, 5, 6, 7, 8, 9, 10, 3, 2, 1]


def test_unhashed_partial_blocks_never_push_out_cached_ones():
    """vLLM issue 42656."""
    manager = caching(6, 4)
    manager.append("system", tokens(8))
    manager.release("system")
    for turn in range(20):
        manager.append(turn, [100 + turn])
        manager.release(turn)
    assert manager.append("again", tokens(9)).cached == 8


def test_48_identical_tokens_twice_share_two_blocks_and_keep_two_copies_of_the_third():
    manager = caching()
    manager.append("A", tokens(48))
    growth = manager.append("B", tokens(48))
    assert manager.block_table("A") == [1, 2, 3]
    assert manager.block_table("B") == [1, 2, 4]
    assert growth.cached == 32
    manager.release("A")
    manager.release("B")
    assert manager.append("C", tokens(49)).cached == 48
    assert manager.block_table("C")[:3] == [1, 2, 3]


def test_free_is_not_empty_until_the_block_is_handed_out():
    events = []
    manager = caching(4, 4, on_event=events.append)
    manager.append("A", tokens(8))
    manager.release("A")
    assert manager.num_free == 3
    assert manager.append("B", tokens(9)).cached == 8
    manager.release("B")
    assert [tuple(event) for event in events if event.request_id == "B"] == [
        ("allocate", 1, "B"),
        ("allocate", 2, "B"),
        ("allocate", 3, "B"),
        ("free", 1, "B"),
        ("free", 2, "B"),
        ("free", 3, "B"),
    ]
    assert manager.free_order() == [3, 2, 1]
    manager.append("C", tokens(12, first=50))
    assert [event.block for event in events if event.kind == "evict"] == [2, 1]
    manager.release("C")
    assert manager.append("D", tokens(9)).cached == 0


def test_hits_are_not_touched_before_the_capacity_check():
    """vLLM issue 11562: 4 new needed, 5 free, 2 of the 5 are this request's hits."""
    manager = caching(6, 4)
    manager.append("A", tokens(8))
    manager.release("A")
    before = manager.free_order()
    with pytest.raises(OutOfBlocks) as refused:
        manager.append("B", tokens(24))
    assert (refused.value.needed, refused.value.free) == (6, 5)
    assert manager.free_order() == before
    assert manager.prefix_cache.stats == PrefixStats(8, 0, 0)


def test_a_colliding_hash_is_found_out_by_its_tokens():
    """vLLM issues 12621 and 15297: a hit on an equal hash alone would serve another prompt's KV."""
    one, other = [1, 2, 3, 4], [4, 3, 2, 1]
    cache = PrefixCache(4, toy_hash)
    first, second = next(cache.links(one, ExtraKeys(), 4)), next(cache.links(other, ExtraKeys(), 4))
    assert first.key == second.key
    manager = caching(8, 4, block_hash=toy_hash)
    manager.append("A", one)
    assert manager.append("B", [*other, 9]).cached == 0
    assert manager.append("C", [*one, 9]).cached == 4


def test_a_collision_one_block_back_is_found_out_too():
    manager = caching(8, 4, block_hash=toy_hash)
    manager.append("A", [1, 2, 3, 4, 5, 6, 7, 8])
    manager.append("B", [4, 3, 2, 1])
    # B's first block is known, and the second block's tokens and toy hash equal A's; its prefix does not.
    assert manager.append("C", [4, 3, 2, 1, 5, 6, 7, 8, 9]).cached == 4


@pytest.mark.parametrize(
    ("keys", "other", "cached"),
    [
        (ExtraKeys(salt="x"), ExtraKeys(salt="x"), 8),
        (ExtraKeys(salt="x"), ExtraKeys(salt="y"), 0),
        (ExtraKeys(salt="x"), ExtraKeys(), 0),
        (ExtraKeys(adapter="x"), ExtraKeys(adapter="x"), 8),
        # The same word as adapter and as salt must not meet: each has its own tag.
        (ExtraKeys(adapter="x"), ExtraKeys(salt="x"), 0),
        (ExtraKeys(content=((5, 2, "cat"),)), ExtraKeys(content=((5, 2, "cat"),)), 8),
        # The image starts in the second block, so the first one is still shared.
        (ExtraKeys(content=((5, 2, "cat"),)), ExtraKeys(content=((5, 2, "dog"),)), 4),
        (ExtraKeys(content=((5, 2, "cat"),)), ExtraKeys(content=((4, 2, "cat"),)), 4),
    ],
)
def test_extra_keys_keep_requests_apart(keys, other, cached):
    manager = caching(8, 4)
    manager.append("A", tokens(9), keys=keys)
    assert manager.append("B", tokens(9), keys=other).cached == cached


def test_the_salt_enters_block_0_only_and_reaches_the_rest_through_the_chain():
    keys = ExtraKeys(salt="s", adapter="a")
    assert keys.of_block(0, 4) == (("adapter", "a"), ("salt", "s"))
    assert keys.of_block(1, 4) == (("adapter", "a"),)


def test_blocks_are_hashed_when_filled_token_by_token_too():
    manager = caching(8, 4)
    for token in tokens(9):
        manager.append_slot("A", token)
    assert manager.append("B", tokens(9)).cached == 8


def test_tokens_without_ids_end_the_chain():
    manager = caching(16, 2)
    manager.append("A", tokens(4))
    manager.append_slot("A")
    manager.append("A", tokens(5, first=5))
    assert manager.append("B", tokens(9)).cached == 4


def test_a_fork_goes_on_hashing_its_own_tokens():
    manager = caching(12, 4)
    manager.append("A", tokens(6))
    manager.fork("A", "C")
    manager.append("A", [60, 70])
    manager.append("C", [61, 71])
    assert manager.append("D", [0, 1, 2, 3, 4, 5, 60, 70, 9]).cached == 8
    assert manager.append("E", [0, 1, 2, 3, 4, 5, 61, 71, 9]).cached == 8


def test_a_block_is_found_only_after_its_step_is_committed():
    manager = caching(12, 4)
    with manager.reserve({"A": tokens(8)}):
        assert manager.append("B", tokens(9)).cached == 0
    assert manager.append("C", tokens(9)).cached == 8


def test_a_failed_step_leaves_nothing_to_be_found():
    manager = caching(12, 4)
    with pytest.raises(RuntimeError), manager.reserve({"A": tokens(8)}):
        raise RuntimeError("the worker died")
    assert manager.append("B", tokens(9)).cached == 0


def test_rolling_back_a_hit_restores_the_queue():
    manager = caching(8, 4)
    manager.append("A", tokens(11))
    manager.release("A")
    before = manager.free_order()
    with pytest.raises(RuntimeError), manager.reserve({"B": tokens(13)}) as reservation:
        assert reservation["B"].cached == 8
        raise RuntimeError
    assert manager.free_order() == before
    manager.check()
    assert manager.append("C", tokens(9)).cached == 8


def test_in_one_batch_a_hit_is_safe_from_the_others_new_blocks():
    """The head of the queue is B's hit; A's new block must not evict it."""
    manager = caching(4, 4)
    for first in (0, 50, 60):
        manager.append(first, tokens(4, first))
    for first in (0, 50, 60):
        manager.release(first)
    assert manager.free_order() == [1, 2, 3]
    with manager.reserve({"A": tokens(4, first=90), "B": tokens(5)}) as reservation:
        assert reservation["B"].cached == 4
        assert (manager.block_table("A"), manager.block_table("B")) == ([2], [1, 3])


def test_two_requests_of_a_batch_that_hit_the_same_free_block_take_it_once():
    manager = caching(5, 4)
    manager.append("old", tokens(4))
    manager.release("old")
    with manager.reserve({"A": tokens(5), "B": tokens(5)}) as reservation:
        assert [reservation[who].cached for who in "AB"] == [4, 4]
    assert manager.num_free == 1
    manager.check()


def test_resetting_needs_an_idle_manager():
    manager = caching(8, 4)
    manager.append("A", tokens(8))
    with pytest.raises(ValueError, match="1 requests hold blocks: release them"):
        manager.reset_prefix_cache()
    manager.release("A")
    manager.reset_prefix_cache()
    assert manager.append("B", tokens(9)).cached == 0
    with pytest.raises(ValueError, match="construct it with prefix_caching=True"):
        BlockManager(8, 4).reset_prefix_cache()


def test_statistics_count_tokens_of_new_requests_and_evicted_blocks():
    manager = caching(4, 4)
    manager.append("A", tokens(8))
    manager.append("A", [1])
    manager.release("A")
    manager.append("B", tokens(9))
    manager.release("B")
    manager.append("C", tokens(12, first=50))
    assert manager.prefix_cache.stats == PrefixStats(queries=8 + 9 + 12, hits=8, evictions=2)


@pytest.mark.parametrize("wrong", [["a"], [1.5], [None], [2**63]])
def test_token_ids_must_be_whole_numbers(wrong):
    manager = caching(8, 4)
    with pytest.raises(ValueError, match="request 'A': token ids are whole numbers"):
        manager.append("A", wrong)
    assert manager.request_ids() == []


@pytest.mark.parametrize("length", [3, 4, 5])
@pytest.mark.parametrize("wrong", ["a", 1.5, 2**63])
def test_a_single_token_that_is_none_changes_nothing(length, wrong):
    """Whether it would open a block, fill one, or neither."""
    manager = caching(8, 4)
    manager.append("A", tokens(length))
    before = manager.block_table("A"), manager.length("A"), manager.free_order()
    with pytest.raises(ValueError, match="token ids are whole numbers of 64 bits"):
        manager.append_slot("A", wrong)
    assert (manager.block_table("A"), manager.length("A"), manager.free_order()) == before
    for token in tokens(9 - length, first=length):
        manager.append_slot("A", token)
    assert manager.append("B", tokens(9)).cached == 8


def test_hashing_a_request_token_by_token_hashes_each_block_once():
    hashed = []

    def counting(parent, content):
        hashed.append(content)
        return toy_hash(parent, content)

    manager = caching(40, 4, block_hash=counting)
    for token in tokens(100):
        manager.append_slot("A", token)
    assert len(hashed) == 25 and len(set(map(len, hashed))) == 1
