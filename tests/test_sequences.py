"""Paged against contiguous sequences, under one interface, with our manager and with others' objects."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from models import small_decoder
from step_managers import MANAGERS, PROMPT, OneByOne, assert_equal_steps, both

from kvlab.block_manager import BlockManager
from kvlab.prefill import causal_attention
from kvlab.sequences import ContiguousSequences, PagedSequences


def test_prefill_attention_equals_torch():
    q, k, v = torch.randn(3, 6, 8), torch.randn(7, 2, 8), torch.randn(7, 2, 8)  # T=3, L=7, Hq=6, Hkv=2, D=8
    mask = torch.ones(3, 7, dtype=torch.bool).tril(4)  # token i of the last 3 sees i + 5 tokens
    expected = torch.nn.functional.scaled_dot_product_attention(
        q.transpose(0, 1)[None],
        k.transpose(0, 1)[None],
        v.transpose(0, 1)[None],
        attn_mask=mask,
        enable_gqa=True,
    )
    assert torch.allclose(causal_attention(q, k, v), expected[0].transpose(0, 1), atol=1e-6)


@pytest.mark.parametrize("manager", MANAGERS)
@pytest.mark.parametrize("block_size", [1, 2, 3, 16])
@pytest.mark.parametrize(("num_heads", "num_kv_heads"), [(2, 2), (6, 2), (4, 1)])
def test_paged_equals_contiguous(manager, block_size, num_heads, num_kv_heads):
    decoder = small_decoder(num_heads, num_kv_heads)
    pair = both(decoder, manager(40, block_size))
    assert_equal_steps(decoder, pair, {"A": PROMPT, "B": [7]})
    for token in range(6):
        assert_equal_steps(decoder, pair, {"A": [token], "B": [token + 1]})
    assert_equal_steps(decoder, pair, {"C": PROMPT[2:], "B": [1, 2, 3], "A": [9]})
    for sequences in pair:
        sequences.release("A")
    assert_equal_steps(decoder, pair, {"A": PROMPT[:3], "B": [4]})


def test_every_layer_and_slot_holds_what_the_contiguous_cache_holds():
    decoder = small_decoder(6, 2)
    contiguous, paged = pair = both(decoder, BlockManager(9, 3, free_order=[7, 2, 5, 0, 1, 8, 3, 4, 6]))
    assert_equal_steps(decoder, pair, {"A": PROMPT, "B": PROMPT[:2]})
    assert_equal_steps(decoder, pair, {"A": [1], "B": [2]})
    for request_id in ("A", "B"):
        for layer in range(decoder.config.num_layers):
            expected = contiguous.caches[request_id].get(layer)
            table = paged.manager.block_table(request_id)
            found = paged.cache.gather(layer, table, paged.length(request_id))
            for name, ours, theirs in zip("kv", found, expected, strict=True):
                assert torch.allclose(ours, theirs, atol=1e-6), (request_id, layer, name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_dtypes(dtype):
    decoder = small_decoder(dtype=dtype)
    contiguous = ContiguousSequences(decoder.config, dtype=dtype)
    paged = PagedSequences(decoder.config, BlockManager(10, 4), dtype=dtype)
    tolerance = 1e-5 if dtype == torch.float32 else 0.1
    for tokens in (PROMPT, [1], [2], [3]):
        assert_equal_steps(decoder, (contiguous, paged), {"A": tokens}, tolerance)
    assert paged.cache.k.dtype == contiguous.caches["A"].dtype == dtype


@st.composite
def schedules(draw):
    """A few steps, forks and releases over four names, as ("step", {...}), ("fork", a, b), ("release", a)."""
    tokens = st.lists(st.integers(0, 49), min_size=1, max_size=4)
    names = st.sampled_from("ABCD")
    step = st.tuples(st.just("step"), st.dictionaries(names, tokens, min_size=1))
    fork = st.tuples(st.just("fork"), names, names)
    release = st.tuples(st.just("release"), names)
    return draw(st.lists(st.one_of(step, step, step, fork, release), max_size=10))


@settings(max_examples=60)
@given(schedule=schedules(), block_size=st.sampled_from([1, 2, 3, 4]), manager=st.sampled_from(MANAGERS[::2]))
def test_any_schedule_gives_the_same_logits(schedule, block_size, manager):
    decoder = small_decoder()
    pair = both(decoder, manager(60 * 4 // block_size, block_size))
    live = set()
    for operation, *arguments in schedule:
        if operation == "step":
            assert_equal_steps(decoder, pair, arguments[0])
            live |= set(arguments[0])
        elif operation == "fork" and arguments[0] in live and arguments[1] not in live:
            for sequences in pair:
                sequences.fork(*arguments)
            live.add(arguments[1])
        elif operation == "release" and arguments[0] in live:
            for sequences in pair:
                sequences.release(*arguments)
            live -= set(arguments)
    assert set(pair[0].request_ids()) == set(pair[1].request_ids()) == live


@pytest.mark.parametrize("manager", [BlockManager, OneByOne])
def test_a_fork_with_its_own_continuation_leaves_the_other_bit_equal(manager):
    decoder = small_decoder()
    alone, forked = (PagedSequences(decoder.config, manager(20, 4)) for _ in range(2))
    for sequences in (alone, forked):
        decoder.step(sequences, {"A": PROMPT})  # 7 tokens: the second block is partial, so it will be copied
    forked.fork("A", "C")
    for token in range(8):
        decoder.step(forked, {"C": [token + 20]})
        expected = decoder.step(alone, {"A": [token]})["A"]
        assert torch.equal(decoder.step(forked, {"A": [token]})["A"], expected)
    assert forked.manager.block_table("A")[0] == forked.manager.block_table("C")[0]
    assert forked.manager.block_table("A")[1] != forked.manager.block_table("C")[1]


@pytest.mark.parametrize("manager", [BlockManager, OneByOne])
@pytest.mark.parametrize("first", "AC")
def test_whichever_of_a_fork_writes_first_both_equal_their_contiguous_twins(manager, first):
    decoder = small_decoder()
    pair = both(decoder, manager(20, 4))
    assert_equal_steps(decoder, pair, {"A": PROMPT})
    for sequences in pair:
        sequences.fork("A", "C")
    assert_equal_steps(decoder, pair, {first: [11]})
    assert_equal_steps(decoder, pair, {"A": [12, 13], "C": [14]})


@pytest.mark.parametrize("manager", [BlockManager, OneByOne])
def test_all_copies_of_a_step_are_one_call(manager):
    """Two families of forks share partial blocks of 3 and 1 tokens: one copy for each member but the last."""
    decoder = small_decoder()
    contiguous, paged = pair = both(decoder, manager(20, 4))
    assert_equal_steps(decoder, pair, {"A": PROMPT, "B": PROMPT[:1]})
    for sequences in pair:
        for parent, child in ("AC", "AD", "BE"):
            sequences.fork(parent, child)
    calls, copy = [], paged.cache.copy
    paged.cache.copy = lambda copies: calls.append(list(copies)) or copy(copies)
    assert paged.bytes_held == 3 * paged.cache.nbytes // 20
    assert_equal_steps(decoder, pair, {name: [1, 2] for name in "ABCDE"})
    assert calls == [paged.copies] and [copy.num_slots for copy in paged.copies] == [3, 1, 3]
    token_bytes = paged.cache.nbytes // (20 * 4)
    assert paged.bytes_copied == 7 * token_bytes
    assert contiguous.bytes_copied == (7 + 7 + 1) * token_bytes
    assert contiguous.bytes_held == (3 * 9 + 2 * 3) * token_bytes
    assert_equal_steps(decoder, pair, {"A": [1]})
    assert paged.copies == [] and len(calls) == 2


def test_a_lost_copy_would_be_seen():
    """The bug that the fork test stands against: without the copy the child's context has a hole."""
    decoder = small_decoder()
    contiguous, paged = pair = both(decoder, BlockManager(20, 4))
    assert_equal_steps(decoder, pair, {"A": PROMPT})
    paged.cache.copy = lambda copies: None
    for sequences in pair:
        sequences.fork("A", "C")
    expected, found = (decoder.step(sequences, {"C": [1]})["C"] for sequences in (contiguous, paged))
    assert (found - expected).abs().max() > 1e-2
