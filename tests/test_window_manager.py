"""Blocks behind a sliding window: when they go back, what stays readable, and that decode agrees."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab import (
    BlockManager,
    OutOfBlocks,
    PagedKVCache,
    attention_oracle,
    paged_decode,
    snapshot,
    violations,
)
from kvlab.window_blocks import held_blocks, skipped_blocks
from kvlab.window_manager import WindowManager


def test_the_engine_s_example_one_token_a_step():
    """vLLM 0.33, W = 8, B = 4: the first block goes at 11 computed tokens, then 15 and 19; 3 held at most."""
    manager = WindowManager(8, 4, 8, null_block=True)
    first_gone = []
    for computed in range(24):
        before = manager.num_holes("A") if computed else 0
        manager.append_slot("A")
        if manager.num_holes("A") > before:
            first_gone.append(computed)
        held = sum(block != 0 for block in manager.block_table("A"))
        assert held == held_blocks(computed, 1, 8, 4) <= 3
    assert first_gone == [11, 15, 19, 23]
    manager.check()


def test_blocks_go_back_last_first_and_are_handed_out_again():
    """Freed like a released request's: the last of them is the next to be used."""
    manager = WindowManager(9, 2, 2, null_block=True, reuse="lru")
    manager.append("A", 8)
    assert manager.block_table("A") == [1, 2, 3, 4]
    manager.append_slot("A")
    assert (manager.block_table("A"), manager.free_order()) == ([0, 0, 0, 4, 3], [2, 1, 5, 6, 7, 8])
    assert manager.num_holes("A") == 3


def test_a_long_request_lives_in_a_small_pool():
    """10,000 tokens through 4 blocks, which hold 16."""
    manager = WindowManager(4, 4, 8)
    for _ in range(10_000):
        manager.append_slot("A")
    assert (manager.length("A"), manager.num_allocated) == (10_000, 2)
    manager.check()
    with pytest.raises(OutOfBlocks):
        BlockManager(4, 4).append("A", 17)


def test_a_refused_call_changes_nothing_and_a_rolled_back_one_only_gives_back():
    manager = WindowManager(4, 2, 2)
    manager.append("A", 7)
    before = (manager.block_table("A"), manager.free_order(), manager.length("A"))
    assert not manager.can_append({"A": 9}) and manager.can_append({"A": 7})
    with pytest.raises(OutOfBlocks) as raised:
        manager.append("A", 10)
    assert raised.value.needed == 5 - 3
    assert (manager.block_table("A"), manager.free_order(), manager.length("A")) == before
    with pytest.raises(RuntimeError), manager.reserve({"A": 3}):
        assert manager.num_holes("A") == 3
        raise RuntimeError
    assert manager.block_table("A") == [-1, -1, -1, 3]
    assert (manager.length("A"), manager.num_free) == (7, 3)
    manager.check()


def test_forks_give_up_their_own_hold():
    manager = WindowManager(8, 2, 2, null_block=True)
    manager.append("A", 6)
    manager.fork("A", "C")
    manager.append_slot("A")
    assert manager.block_table("A")[:2] == [0, 0]
    assert manager.block_table("C") == [1, 2, 3], "the other still holds them"
    manager.append_slot("C")
    assert manager.num_holes("C") == 2
    manager.fork("C", "D")
    assert manager.num_holes("D") == 2
    manager.check()
    for who in "ACD":
        manager.release(who)
    assert manager.num_free == 7
    manager.check()


def test_what_is_behind_the_window_has_no_address():
    manager = WindowManager(8, 2, 2)
    manager.append("A", 6)
    manager.append_slot("A")
    with pytest.raises(IndexError, match="position 3 is behind the window, its block was given back"):
        manager.translate("A", 3)
    assert manager.translate("A", 6).offset == 0
    state = snapshot(manager, ["A"])
    assert (violations(state), state.hole) == ([], -1)


@pytest.mark.parametrize("window", [0, -1, 2.5])
def test_a_window_is_at_least_one_token(window):
    with pytest.raises(ValueError, match="window must be at least 1"):
        WindowManager(4, 4, window)


steps = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "one", "one", "fork", "release", "fail"]),
        st.integers(0, 3),
        st.integers(1, 9),
    ),
    max_size=50,
)


def books(manager):
    tables = {who: (manager.block_table(who), manager.length(who)) for who in manager.request_ids()}
    return tables, manager.free_order()


@given(
    steps=steps,
    block_size=st.sampled_from([1, 2, 3, 4]),
    window=st.one_of(st.none(), st.integers(1, 9)),
    chunked=st.booleans(),
    caching=st.booleans(),
)
@settings(max_examples=150)
def test_every_token_in_the_window_is_where_the_table_says(steps, block_size, window, chunked, caching):
    """Slots are written and copied as told; what a next token may see must still be there."""
    manager = WindowManager(
        14,
        block_size,
        window,
        chunked=chunked and window is not None,
        null_block=True,
        prefix_caching=caching,
    )
    slots, texts = {}, {}

    def write(who, growth, ids):
        for copy in growth.copies:
            for offset in range(copy.num_slots):
                slots[copy.destination, offset] = slots[copy.source, offset]
        texts[who] = texts.get(who, []) + ids
        start = len(texts[who]) - len(ids)
        for position, slot in list(enumerate(growth.slots, start))[growth.cached :]:
            slots[slot.block, slot.offset] = texts[who][: position + 1]

    for kind, who, count in steps:
        other = (who + count) % 4
        ids = [count % 2] * (1 if kind == "one" else count)
        before = books(manager)
        try:
            if kind == "fork":
                manager.fork(who, other)
                texts[other] = list(texts[who])
            elif kind == "release":
                manager.release(who)
                del texts[who]
            elif kind == "fail":
                with manager.reserve({who: ids}) as reservation:
                    for slot in reservation[who].slots[reservation[who].cached :]:
                        slots[slot.block, slot.offset] = None
                    raise RuntimeError
            else:
                write(who, manager.append(who, ids), ids)
        except (OutOfBlocks, KeyError, ValueError):
            assert books(manager) == before
        except RuntimeError:
            pass
        manager.check()
        assert set(texts) == set(manager.request_ids())
        for live, text in texts.items():
            length = manager.length(live)
            assert length == len(text)
            gone = skipped_blocks(length, window, block_size, chunked=manager.chunked) if window else 0
            assert manager.num_holes(live) <= gone
            for position in range(gone * block_size, length):
                slot = manager.translate(live, position)
                assert slots[slot.block, slot.offset] == text[: position + 1]


@pytest.mark.parametrize(("window", "block_size"), [(1, 4), (5, 4), (8, 4), (9, 4), (16, 16), (7, 1)])
def test_decode_through_the_holes_equals_attention_over_the_window(window, block_size):
    """Two requests in a pool that holds their windows only; what is free is poisoned at once."""
    torch.manual_seed(0)
    blocks = 2 * (-(-window // block_size) + 1)
    manager = WindowManager(blocks + 1, block_size, window, null_block=True)
    cache = PagedKVCache(1, blocks + 1, block_size, 2, 8)
    cache.k[:], cache.v[:] = float("nan"), float("nan")
    history = {"A": [], "B": []}
    for _ in range(3 * window + 2 * block_size):
        q = torch.randn(2, 4, 8)  # [S, Hq, D]
        with manager.reserve({"A": 1, "B": 1}) as reservation:
            for who in history:
                k, v = torch.randn(2, 1, 2, 8)  # each [1, Hkv, D]
                cache.write(0, reservation[who].slots, k, v)
                history[who].append((k, v))
            for block in manager.free_order():
                cache.k[0, block] = cache.v[0, block] = float("nan")
            got = paged_decode(
                q,
                cache.k[0],
                cache.v[0],
                manager.block_table_array("AB"),
                manager.context_lens("AB") + 1,
                window=window,
                backend="reference",
            )
        for row, who in enumerate("AB"):
            k, v = (torch.cat(part) for part in zip(*history[who], strict=True))  # each [T, Hkv, D]
            expected = attention_oracle(q[row], k, v, window=window)
            torch.testing.assert_close(got[row].double(), expected, atol=2e-6, rtol=0)
