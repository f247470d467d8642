"""Groups of layers in one pool: real tables beside the arithmetic, and nothing lost between the groups."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab import OutOfBlocks, PagedKVCache, attention_oracle, paged_decode
from kvlab.hybrid_manager import GroupKind, HybridManager
from kvlab.layer_groups import plan_groups
from kvlab.layer_kinds import Layer, ceil_div
from kvlab.window_blocks import held_blocks

FULL, SLIDING = Layer("full", 8, 128, 128), Layer("sliding", 8, 128, 128, window=1024)


def test_a_full_and_five_sliding_groups_hold_what_the_formula_says():
    """vLLM 0.33, B = 16, window 1024, 2,048 tokens in flight: at most 512 + 5 * 193 blocks for 8,192."""
    plan = plan_groups([FULL] + [SLIDING] * 5, 16, 2)
    manager = HybridManager(1501, plan)
    most = 0
    for _ in range(4):
        with manager.reserve({"A": 2048}):
            most = max(most, 1500 - manager.num_free)
    assert manager.blocks_held("A") == [512] + [512 - (6144 - 1023) // 16] * 5
    assert most <= plan.blocks_per_request(8192) == 512 + 5 * 193
    for length in range(8192, 8192 + 40):
        manager.append("A", 1)
        assert manager.blocks_held("A") == [ceil_div(length + 1, 16)] + [held_blocks(length, 1, 1024, 16)] * 5
        assert manager.blocks_held("A")[1] in (64, 65)
    manager.check()
    manager.release("A")
    assert manager.num_free == 1500


def test_the_tables_of_two_groups():
    """Tokens 0 to 8, B = 2, W = 3: the full group keeps its blocks, the sliding one has holes in front."""
    manager = HybridManager(12, [GroupKind("full", 2), GroupKind("sliding", 2, 3)])
    for _ in range(9):
        manager.append("A", 1)
    assert manager.block_table("A", 0) == [1, 3, 2, 4, 5], "2, 4 and 5 were the sliding group's before"
    assert manager.block_table("A", 1) == [0, 0, 0, 6, 7]
    assert manager.blocks_held("A") == [5, 2]
    manager.check()


def test_a_linear_group_keeps_one_block_whatever_the_length():
    manager = HybridManager(20, [GroupKind("full", 4), GroupKind("linear", 4)])
    first = manager.append("A", 3)
    assert [len(growth.slots) for growth in first] == [3, 1]
    state = manager.block_table("A", 1)
    again = manager.append("A", 30)
    assert ([len(g.slots) for g in again], manager.block_table("A", 1)) == ([30, 0], state)
    assert (manager.blocks_held("A"), manager.length("A")) == ([9, 1], 33)
    manager.check()


def test_one_group_takes_what_another_gives_in_the_same_step():
    """Pool of 4: at 8 tokens the sliding group's dead block is the only one left for the full group."""
    manager = HybridManager(5, [GroupKind("sliding", 4, 4), GroupKind("full", 4)])
    manager.append("A", 8)
    assert manager.num_free == 0
    with pytest.raises(OutOfBlocks) as raised:
        manager.append("A", 1)
    assert (raised.value.needed, raised.value.free) == (1, 0)
    wide = HybridManager(6, [GroupKind("sliding", 4, 4), GroupKind("full", 4)])
    wide.append("A", 8)
    wide.append("A", 1)
    assert wide.blocks_held("A") == [2, 3] and wide.num_free == 0


def test_windows_agree_with_decode_in_both_groups():
    """Layer 0 is full, layer 1 sliding; both live in one cache and read their own tables."""
    torch.manual_seed(1)
    manager = HybridManager(40, [GroupKind("full", 4), GroupKind("sliding", 4, 6)])
    cache = PagedKVCache(1, 40, 4, 2, 8)
    history = [[], []]
    for step in range(40):
        q = torch.randn(1, 4, 8)  # [S, Hq, D]
        with manager.reserve({"A": 1}) as reservation:
            for group, window in enumerate((None, 6)):
                k, v = torch.randn(2, 1, 2, 8)  # each [1, Hkv, D]
                cache.write(0, reservation["A"][group].slots, k, v)
                history[group].append((k, v))
                tables = manager.block_table_array(["A"], group)
                lens = torch.tensor([step + 1])
                got = paged_decode(
                    q,
                    cache.k[0],
                    cache.v[0],
                    torch.from_numpy(tables),
                    lens,
                    window=window,
                    backend="reference",
                )
                keys, values = (torch.cat(part) for part in zip(*history[group], strict=True))  # [T, Hkv, D]
                expected = attention_oracle(q[0], keys, values, window=window)
                torch.testing.assert_close(got[0].double(), expected, atol=2e-6, rtol=0)


kinds = st.lists(
    st.one_of(
        st.builds(GroupKind, st.just("full"), st.integers(1, 4), st.none()),
        st.builds(GroupKind, st.just("sliding"), st.integers(1, 4), st.integers(1, 9)),
        st.builds(GroupKind, st.just("chunked"), st.integers(1, 4), st.integers(1, 9)),
        st.builds(GroupKind, st.just("linear"), st.integers(1, 4), st.none()),
    ),
    min_size=1,
    max_size=4,
)
steps = st.lists(
    st.tuples(
        st.sampled_from(["grow", "grow", "grow", "fail", "release"]), st.integers(0, 3), st.integers(1, 7)
    ),
    max_size=40,
)


@given(kinds=kinds, steps=steps, num_blocks=st.integers(4, 40))
@settings(max_examples=100)
def test_each_block_belongs_to_one_group_of_one_request_or_is_free(kinds, steps, num_blocks):
    manager = HybridManager(num_blocks, kinds)
    lengths, last = {}, {}
    for kind, who, count in steps:
        batch = {who: count, (who + count) % 4: 1}
        before = books(manager)
        try:
            if kind == "release":
                manager.release(who)
                del lengths[who]
                continue
            with manager.reserve(batch):
                manager.check()
                if kind == "fail":
                    raise RuntimeError
            for r, n in batch.items():
                last[r], lengths[r] = (lengths.get(r, 0), n), lengths.get(r, 0) + n
        except (OutOfBlocks, KeyError):
            assert books(manager) == before
        except RuntimeError:
            assert books(manager)[0].keys() == before[0].keys() and manager.num_free >= len(before[1])
        manager.check()
        held = 0
        assert {r: manager.length(r) for r in manager.request_ids()} == lengths
        for r in lengths:
            for group, blocks in zip(kinds, manager.blocks_held(r), strict=True):
                held += blocks
                if group.kind == "linear":
                    assert blocks == 1
                elif group.kind == "full":
                    assert blocks == ceil_div(lengths[r], group.block_size)
                else:
                    chunked = group.kind == "chunked"
                    most = held_blocks(*last[r], group.window, group.block_size, chunked=chunked)
                    assert blocks <= most
        assert held + manager.num_free == num_blocks - 1


def books(manager):
    tables = {
        who: [manager.block_table(who, group) for group in range(len(manager.groups))]
        for who in manager.request_ids()
    }
    return tables, manager.free_order()


def test_bad_groups_and_requests_are_refused():
    with pytest.raises(ValueError, match="at least one group"):
        HybridManager(8, [])
    with pytest.raises(ValueError, match="group 1: 'ring' is not a kind"):
        HybridManager(8, [GroupKind("full", 4), GroupKind("ring", 4)])
    for bad in (GroupKind("full", 4, 8), GroupKind("sliding", 4)):
        with pytest.raises(ValueError, match="group 0: sliding and chunked layers need a window"):
            HybridManager(8, [bad])
    with pytest.raises(ValueError, match="block_size must be at least 1"):
        HybridManager(8, [GroupKind("full", 0)])
    manager = HybridManager(8, [GroupKind("full", 4)])
    with pytest.raises(KeyError, match="no request 'A'"):
        manager.release("A")
    with pytest.raises(ValueError, match="at least 1 token"):
        manager.append("A", 0)
    with manager.reserve({"A": 1}), pytest.raises(ValueError, match="open reservation"):
        manager.append("A", 1)
