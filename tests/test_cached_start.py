"""Where a request can start from the cache: by window, by chunk, and where several groups of layers agree.

The oracle knows no hashes: it reads the tables, remembers which prefix each block was filled with, and looks
for the longest start of which every group has all that the next token sees.
"""

from math import lcm

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab import OutOfBlocks
from kvlab.cached_start import CachedStart, Lookup, common_start
from kvlab.hybrid_manager import GroupKind, HybridManager
from kvlab.prefix_cache import ExtraKeys, PrefixCache
from kvlab.window_blocks import blocks_for_a_hit, skipped_blocks
from kvlab.window_manager import WindowManager

TEXT = list(range(100, 140))


def cache_of(block_size, tokens, blocks):
    """A cache that has these logical blocks of the text; logical block n lies in block 10 + n."""
    cache = PrefixCache(block_size)
    for n, link in enumerate(cache.links(tokens, ExtraKeys(), len(tokens))):
        if n in blocks:
            cache.add(10 + n, link)
    return cache


def lookup(blocks, window=None, block_size=4, tokens=TEXT, chunked=False):
    cache = cache_of(block_size, tokens, blocks)
    if window is None:
        return Lookup(cache, tokens, ExtraKeys())
    return Lookup(
        cache,
        tokens,
        ExtraKeys(),
        lambda computed: skipped_blocks(computed, window, block_size, chunked=chunked),
    )


@pytest.mark.parametrize(
    ("blocks", "window", "expected"),
    [
        ({0, 1, 2}, None, 12),
        ({0, 1, 3, 4}, None, 8),
        (range(10), None, 36),  # never the last token: 40 tokens, 9 blocks
        ({3, 4}, 8, 20),  # ceil(7 / 4) = 2 blocks in a row, wherever they are
        ({3, 4, 6}, 8, 20),
        ({1, 2, 5, 6}, 8, 28),  # the rightmost pair
        ({3}, 8, 0),
        ({0}, 8, 4),  # a start shorter than the window needs only what there is
        ({3}, 5, 16),
        ({3}, 6, 0),
    ],
)
def test_the_longest_start_is_searched_from_the_right(blocks, window, expected):
    assert lookup(blocks, window).longest(1000) == expected


def test_what_a_start_consists_of():
    found = lookup({3, 4}, 8)
    start = found.start(20)
    assert (start.holes, start.blocks, start.num_blocks) == (3, (13, 14), 5)
    assert len(start.blocks) == blocks_for_a_hit(8, 4)
    assert start.link.tokens == tuple(TEXT[16:20])
    assert found.start(0) == CachedStart()


def test_a_chunk_starts_afresh():
    """Chunks of 8: after 32 tokens nothing before is seen, so nothing needs to be there."""
    assert lookup(set(), 8, chunked=True).longest(1000) == 32
    assert lookup({8}, 8, chunked=True).longest(1000) == 36
    assert lookup({8}, 8, chunked=True).start(36) == CachedStart(8, (18,), lookup({8}).start(36).link)


def test_full_and_sliding_agree_on_a_fixed_point():
    """The full group allows 5 blocks, but the sliding one has no pair that ends there; then 3 it is."""
    full, sliding = lookup(range(5)), lookup({1, 2, 6, 7}, 8)
    assert (full.longest(1000), sliding.longest(1000)) == (20, 32)
    assert common_start([full, sliding]) == common_start([sliding, full]) == 12


def test_one_round_is_not_enough_for_two_windows():
    """A can start at 28, 12 or 4; B at 24, 8 or 4: each refuses what the other one is left with."""
    a, b = lookup({0, 2, 6}, 5), lookup({0, 1, 5}, 5)
    starts = [[n for n in range(0, 40, 4) if group.longest(n) == n] for group in (a, b)]
    assert starts == [[0, 4, 12, 28], [0, 4, 8, 24]]
    assert common_start([a, b]) == common_start([b, a]) == 4


def test_groups_of_different_blocks_start_at_whole_blocks_of_both():
    coarse = lookup(range(5), block_size=8)
    fine = lookup(range(9), block_size=4)
    assert common_start([coarse, fine]) == 32
    assert common_start([coarse, lookup(range(7), block_size=4)]) == 24
    assert common_start([lookup(range(3), block_size=6), lookup(range(10), block_size=4)]) == 12


def test_a_request_of_a_window_manager_starts_with_holes():
    """W = 8, B = 4. A's early blocks are gone and used again; B starts at token 20 with two of A's blocks."""
    manager = WindowManager(7, 4, 8, null_block=True, prefix_caching=True)
    for token in TEXT[:24]:
        manager.append("A", [token])
    table = manager.block_table("A")
    assert table[:4] == [0, 0, 0, 0]
    manager.release("A")
    growth = manager.append("B", [*TEXT[:24], 7])
    assert growth.cached == 24
    assert manager.block_table("B")[:6] == [0, 0, 0, 0, *table[4:]]
    assert growth.slots[24].block not in table and growth.slots[0].block == 0
    manager.check()
    manager.fork("B", "C")
    assert manager.num_holes("C") == 4
    manager.release("B")
    manager.release("C")
    assert manager.num_free == 6
    manager.check()


def test_a_rolled_back_start_leaves_the_free_list_as_it_was():
    manager = HybridManager(20, [GroupKind("full", 4), GroupKind("sliding", 4, 6)], prefix_caching=True)
    manager.append("A", TEXT[:14])
    partial = [manager.block_table("A", group)[-1] for group in (1, 0)]
    manager.release("A")
    before = manager.free_order()
    assert before[:2] == partial, "what has no content is used again first"
    with pytest.raises(RuntimeError), manager.reserve({"B": TEXT[:14]}) as step:
        assert [growth.cached for growth in step["B"]] == [12, 12]
        raise RuntimeError
    assert manager.free_order() == before and manager.request_ids() == []
    assert [growth.cached for growth in manager.append("B", TEXT[:14])] == [12, 12]
    manager.check()


def test_tenants_do_not_share_and_bad_ids_change_nothing():
    manager = HybridManager(40, [GroupKind("full", 4), GroupKind("sliding", 4, 6)], prefix_caching=True)
    red, blue = ExtraKeys(salt="red"), ExtraKeys(salt="blue")
    manager.append("A", TEXT[:14], keys=red)
    assert manager.append("B", TEXT[:14], keys=blue)[0].cached == 0
    assert manager.append("C", np.array(TEXT[:14]), keys=red)[0].cached == 12
    before = manager.free_order()
    with pytest.raises(ValueError, match="request 'D': token ids are whole numbers"):
        manager.append("D", ["a", "b"])
    assert manager.free_order() == before and "D" not in manager.request_ids()
    assert manager.append("E", np.int64(3))[0].cached == 0
    manager.check()


def test_a_linear_group_has_no_cached_start():
    with pytest.raises(ValueError, match="the state at its end: leave prefix_caching off"):
        HybridManager(8, [GroupKind("full", 4), GroupKind("linear", 4)], prefix_caching=True)


class Contents:
    """Which group's prefix each block was filled with, read from the tables after every step."""

    def __init__(self, manager):
        self.manager, self.filled, self.tokens = manager, {}, {}

    def look(self):
        for who, tokens in self.tokens.items():
            for number, group in enumerate(self.manager.groups):
                for n, block in enumerate(self.manager.block_table(who, number)):
                    end = (n + 1) * group.block_size
                    if block:
                        prefix = tuple(tokens[:end]) if end <= len(tokens) else None
                        self.filled[block] = prefix and (number, prefix)

    def longest(self, prompt):
        unit = lcm(*(group.block_size for group in self.manager.groups))
        there = set(self.filled.values())
        return next(
            start
            for start in range((len(prompt) - 1) // unit * unit, -1, -unit)
            if all(
                (number, tuple(prompt[: (n + 1) * group.block_size])) in there
                for number, group in enumerate(self.manager.groups)
                for n in range(first_seen(group, start), start // group.block_size)
            )
        )


def first_seen(group, start):
    """The block of the oldest token that token number `start` sees, by the definition of each kind."""
    if group.kind == "full":
        return 0
    oldest = (
        start // group.window * group.window if group.kind == "chunked" else max(0, start - group.window + 1)
    )
    return oldest // group.block_size


kinds = st.lists(
    st.one_of(
        st.builds(GroupKind, st.just("full"), st.integers(1, 4), st.none()),
        st.builds(GroupKind, st.just("sliding"), st.integers(1, 4), st.integers(1, 9)),
        st.builds(GroupKind, st.just("chunked"), st.integers(1, 4), st.integers(1, 9)),
    ),
    min_size=1,
    max_size=3,
)
texts = st.integers(1, 16).flatmap(lambda n: st.tuples(st.just(n), st.sampled_from([n, n, 8])))
steps = st.lists(
    st.tuples(st.sampled_from(["new", "new", "new", "grow", "release"]), st.integers(0, 2), texts),
    max_size=30,
)


@given(kinds=kinds, steps=steps, num_blocks=st.integers(4, 24))
@settings(max_examples=300)
def test_every_start_is_the_longest_that_the_tables_allow(kinds, steps, num_blocks):
    manager = HybridManager(num_blocks, kinds, prefix_caching=True)
    contents = Contents(manager)
    for kind, who, (length, same) in steps:
        # Prompts share their first `same` tokens with the text that all begin with.
        prompt = [*range(min(length, same)), *range(1000 * who, 1000 * who + max(0, length - same))]
        live = contents.tokens
        if kind == "release" and who in live:
            manager.release(who)
            del live[who]
        elif kind == "new" and who not in live:
            expected = contents.longest(prompt)
            try:
                growths = manager.append(who, prompt)
            except OutOfBlocks:
                continue
            assert {growth.cached for growth in growths} == {expected}
            for number, group in enumerate(kinds):
                for n, block in enumerate(manager.block_table(who, number)[: expected // group.block_size]):
                    prefix = tuple(prompt[: (n + 1) * group.block_size])
                    assert block == 0 or contents.filled[block] == (number, prefix)
            live[who] = prompt
        elif kind == "grow" and who in live:
            try:
                manager.append(who, prompt)
            except OutOfBlocks:
                continue
            live[who] = live[who] + prompt
        contents.look()
        manager.check()
