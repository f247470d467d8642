"""Paged decode attention against the float64 oracle, and the oracle against sums written out by hand."""

import math

import numpy as np
import pytest
import torch
from attention_batch import HKV, Batch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab import BlockManager
from kvlab.attention import attention_oracle, online_softmax_trace, paged_decode
from kvlab.backends import BACKENDS, Backend
from kvlab.kv_cache import PagedKVCache
from kvlab.kv_checks import KV_DTYPES

BLOCK_SIZES = (1, 2, 3, 4, 8, 16)
# Errors against float64 on the same stored numbers: of float32 sums, and of the output's own rounding.
TOLERANCE = {torch.float32: 3e-6, torch.float64: 1e-12, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def edge_lengths(block_size):
    return sorted({0, 1, max(block_size - 1, 1), block_size, block_size + 1, 2 * block_size, 37})


def assert_close(output, expected, dtype):
    assert output.dtype == dtype and output.shape == expected.shape
    assert not output.isnan().any()
    assert (output.double() - expected).abs().max() <= TOLERANCE[dtype]


# -- the oracle ---------------------------------------------------------------------------------------------


def test_oracle_by_hand():
    # Two positions whose scores differ by ln 3: weights 1/4 and 3/4.
    q = torch.tensor([[1.0, 0.0]])
    k = torch.tensor([[[0.0, 5.0]], [[math.log(3), -7.0]]])
    v = torch.tensor([[[4.0, 0.0]], [[8.0, 4.0]]])
    expected = torch.tensor([[7.0, 3.0]], dtype=torch.float64)
    assert torch.allclose(attention_oracle(q, k, v, scale=1.0), expected, atol=1e-7)
    assert torch.equal(attention_oracle(q, k, v, window=1), v[1].double())


def test_oracle_equals_written_out_sums():
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(*s, generator=generator) for s in [(6, 4), (5, 2, 4), (5, 2, 4)])
    output = attention_oracle(q, k, v)
    for head in range(6):
        kv = head // 3
        scores = [sum(float(q[head, d]) * float(k[t, kv, d]) for d in range(4)) / 2 for t in range(5)]
        weights = [math.exp(score) for score in scores]
        for d in range(4):
            value = sum(w * float(v[t, kv, d]) for t, w in enumerate(weights)) / sum(weights)
            assert math.isclose(float(output[head, d]), value, rel_tol=1e-12, abs_tol=1e-12)


def test_oracle_of_nothing_is_zeros_in_float64():
    output = attention_oracle(torch.ones(4, 8), torch.ones(0, 2, 8), torch.ones(0, 2, 8))
    assert output.dtype == torch.float64 and output.tolist() == [[0.0] * 8] * 4


# -- the paged reference against the oracle -----------------------------------------------------------------


@pytest.mark.parametrize("head_dim", [32, 64, 80, 128])
@pytest.mark.parametrize("group", [1, 3, 4, 5, 7])
@pytest.mark.parametrize("block_size", BLOCK_SIZES)
def test_reference_equals_the_oracle(block_size, group, head_dim):
    batch = Batch(edge_lengths(block_size), block_size, head_dim, group)
    assert_close(batch.decode(backend="reference"), batch.oracle(), torch.float32)


@pytest.mark.parametrize("window", [1, 2, 4, 5, 36, 37, 100])
@pytest.mark.parametrize("block_size", BLOCK_SIZES)
def test_window(block_size, window):
    batch = Batch(edge_lengths(block_size), block_size, group=3)
    assert_close(batch.decode(window=window), batch.oracle(window=window), torch.float32)


def test_blocks_before_the_window_are_not_read():
    batch = Batch([37, 20], 4)
    expected = batch.oracle(window=6)
    # Tokens 31 .. 36 and 14 .. 19 count: blocks 7 .. 9 and 3 .. 4.
    batch.tables[0, :7] = -1
    batch.tables[1, :3] = 10**6
    assert_close(batch.decode(window=6), expected, torch.float32)


@pytest.mark.parametrize("num_splits", [1, 2, 3, 4, 7, 64])
@pytest.mark.parametrize("window", [None, 9])
@pytest.mark.parametrize("block_size", [1, 3, 16])
def test_splits_change_nothing(block_size, window, num_splits):
    batch = Batch([0, 5, 37, 300], block_size, group=5)
    output = batch.decode(num_splits=num_splits, window=window)
    assert_close(output, batch.oracle(window=window), torch.float32)


@pytest.mark.parametrize("q_dtype", TOLERANCE)
@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
def test_every_pair_of_dtypes(kv_dtype, q_dtype):
    batch = Batch([0, 1, 8, 37], 8, 64, 4, kv_dtype, q_dtype)
    assert_close(batch.decode(), batch.oracle(), q_dtype)


@pytest.mark.parametrize("num_splits", [None, 3])
@pytest.mark.parametrize(("k_scale", "v_scale"), [(2.0, 0.5), (0.25, 1.0), (1.0, 3.0)])
def test_k_scale_and_v_scale(k_scale, v_scale, num_splits):
    batch = Batch([1, 37], 4, 64, 4, torch.float8_e4m3fn)
    scales = {"k_scale": k_scale, "v_scale": v_scale}
    assert_close(batch.decode(num_splits=num_splits, **scales), batch.oracle(**scales), torch.float32)


@pytest.mark.parametrize("scale", [0.05, 1.0])
def test_scale(scale):
    batch = Batch([3, 37], 4)
    assert_close(batch.decode(scale=scale), batch.oracle(scale=scale), torch.float32)


def test_huge_scores_do_not_overflow():
    batch = Batch([37], 4, q_dtype=torch.float64)
    batch.q *= 1e4
    assert_close(batch.decode(), batch.oracle(), torch.float64)


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(0, 70), max_size=5),
    block_size=st.integers(1, 17),
    group=st.integers(1, 8),
    window=st.none() | st.integers(1, 80),
    num_splits=st.none() | st.integers(1, 9),
    seed=st.integers(0, 2**16),
)
def test_any_batch_equals_the_oracle(lengths, block_size, group, window, num_splits, seed):
    batch = Batch(lengths, block_size, 8, group, seed=seed)
    output = batch.decode(window=window, num_splits=num_splits)
    if lengths:
        assert_close(output, batch.oracle(window=window), torch.float32)
    else:
        assert output.shape == (0, HKV * group, 8)


# -- what must not reach the output -------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 37])
def test_nan_in_unused_slots_does_not_reach_the_output(length):
    """vLLM issue 35219: 0 * NaN is NaN, so masking the weights alone is not enough."""
    batch = Batch([length], 4)
    assert batch.v_cache.isnan().any() and batch.k_cache.isnan().any()
    dirty = batch.decode()
    batch.k_cache.nan_to_num_(0.0)
    batch.v_cache.nan_to_num_(0.0)
    assert torch.equal(dirty, batch.decode())


def test_infinity_in_unused_slots_does_not_reach_the_output():
    batch = Batch([5, 37], 4)
    batch.k_cache.nan_to_num_(math.inf)
    batch.v_cache.nan_to_num_(-math.inf)
    assert_close(batch.decode(), batch.oracle(), torch.float32)


def test_nan_in_one_sequence_stays_there():
    batch = Batch([9, 9], 4)
    batch.v_cache[batch.tables[0, 1], 2] = math.nan  # position 6 of sequence 0
    output = batch.decode()
    assert output[0].isnan().all()
    assert (output[1].double() - batch.oracle()[1]).abs().max() < 3e-6


def test_empty_contexts_give_zeros():
    batch = Batch([0, 0], 4)
    assert torch.equal(batch.decode(), torch.zeros(2, HKV, 32))
    no_table = paged_decode(
        batch.q, batch.k_cache, batch.v_cache, torch.empty(2, 0, dtype=torch.int32), batch.lens
    )
    assert torch.equal(no_table, torch.zeros(2, HKV, 32))


def test_where_the_blocks_lie_does_not_matter():
    batch = Batch([37, 12], 4)
    expected = batch.decode()
    order = torch.randperm(len(batch.k_cache), generator=torch.Generator().manual_seed(3))
    batch.k_cache, batch.v_cache = batch.k_cache[order], batch.v_cache[order]
    moved = torch.argsort(order).int()
    for row, count in ((0, 10), (1, 3)):
        batch.tables[row, :count] = moved[batch.tables[row, :count].long()]
    assert torch.equal(batch.decode(), expected)


def test_inputs_are_left_alone():
    batch = Batch([5, 37], 4)
    before = [tensor.clone() for tensor in (batch.q, batch.k_cache, batch.v_cache, batch.tables, batch.lens)]
    batch.decode(window=3, num_splits=2)
    after = (batch.q, batch.k_cache, batch.v_cache, batch.tables, batch.lens)
    assert all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(before, after, strict=True))


def test_from_manager_to_output():
    """Two requests grow in turns; NumPy tables and lengths come straight from the manager."""
    manager, cache = BlockManager(12, 3), PagedKVCache(1, 12, 3, HKV, 16)
    generator = torch.Generator().manual_seed(5)
    k, v = torch.randn(2, 2, 13, HKV, 16, generator=generator)
    for t in range(13):
        for row, request_id in enumerate("AB"):
            cache.write(0, [manager.append_slot(request_id)], k[row, t : t + 1], v[row, t : t + 1])
    q = torch.randn(2, 4, 16, generator=generator)
    tables, lens = manager.block_table_array(["A", "B"]), manager.context_lens(["A", "B"])
    assert isinstance(tables, np.ndarray) and isinstance(lens, np.ndarray)
    output = paged_decode(q, cache.k[0], cache.v[0], tables, lens)
    expected = torch.stack([attention_oracle(q[row], k[row], v[row]) for row in range(2)])
    assert_close(output, expected, torch.float32)


# -- refusals -----------------------------------------------------------------------------------------------


def test_a_position_past_the_row_is_an_error_not_the_neighbours_block():
    """vLLM issue 53982: a 2-entry row of blocks of 4 has no position 8, whatever lies behind the row."""
    batch = Batch([8, 8], 4)
    rows = batch.tables[:, :2]
    nine = torch.tensor([9, 8], dtype=torch.int32)
    with pytest.raises(IndexError, match=r"sequence 0: context length 9 .*2 blocks of 4 hold 0 to 8"):
        paged_decode(batch.q, batch.k_cache, batch.v_cache, rows, nine)
    batch.tables[0, 2:] = -1
    with pytest.raises(IndexError, match=r"block_tables\[0, 2\] is -1.*context of 9 tokens needs a block"):
        paged_decode(batch.q, batch.k_cache, batch.v_cache, batch.tables, nine)
    with pytest.raises(IndexError, match=r"does not fit the table \[0, 1\]"):
        online_softmax_trace(batch.q[0, 0], batch.k_cache[:, :, 0], batch.v_cache[:, :, 0], [0, 1], 9)


def test_absent_backends_are_named_with_those_that_exist():
    with pytest.raises(ValueError, match=r"no backend 'cuda' here.*auto, triton, cpu, reference"):
        Batch([3], 4).decode(backend="cuda")


def test_auto_takes_the_first_backend_that_suits(monkeypatch):
    fast = {"fast": Backend(lambda q, *_, **__: q + 1, lambda q, *_: q.dtype == torch.float16)}
    monkeypatch.setattr("kvlab.attention.BACKENDS", {**fast, "reference": BACKENDS["reference"]})
    half, single = Batch([3], 4, q_dtype=torch.float16), Batch([3], 4)
    assert torch.equal(half.decode(), half.q + 1)
    assert torch.equal(single.decode(backend="fast"), single.q + 1)
    assert_close(single.decode(), single.oracle(), torch.float32)


def changed(**inputs):
    batch = Batch([5, 6], 4, 32, 2)
    arguments = {
        "q": batch.q,
        "k_cache": batch.k_cache,
        "v_cache": batch.v_cache,
        "block_tables": batch.tables,
        "context_lens": batch.lens,
    }
    return paged_decode(**{**arguments, **inputs})


INT = torch.int32
REFUSALS = {
    "rank of q": ({"q": torch.zeros(2, 32)}, r"q must have 3 dimensions, got shape \[2, 32\]"),
    "rank of a cache": ({"v_cache": torch.zeros(7, 4, 32)}, r"v_cache must have 4 dimensions"),
    "rank of the tables": ({"block_tables": torch.zeros(2, dtype=INT)}, r"block_tables must have 2"),
    "K and V differ": (
        {"v_cache": torch.zeros(7, 4, 2, 16)},
        r"k_cache \[7, 4, 2, 32\] and v_cache \[7, 4, 2, 16\]",
    ),
    "head_dim": ({"q": torch.zeros(2, 4, 16)}, r"q \[2, 4, 16\], k_cache \[7, 4, 2, 32\]"),
    "heads": ({"q": torch.zeros(2, 3, 32)}, r"3 query heads cannot share 2 KV heads"),
    "rows": ({"context_lens": torch.zeros(3, dtype=INT)}, r"one row a sequence.*\[3\]"),
    "dtype of q": ({"q": torch.zeros(2, 4, 32, dtype=torch.int8)}, r"not torch.int8"),
    "dtype of the caches": (
        {
            "k_cache": torch.zeros(7, 4, 2, 32, dtype=torch.float64),
            "v_cache": torch.zeros(7, 4, 2, 32).double(),
        },
        r"k_cache torch.float64",
    ),
    "dtypes of K and V": ({"v_cache": torch.zeros(7, 4, 2, 32).half()}, r"float32 and v_cache torch.float16"),
    "dtype of the tables": (
        {"block_tables": torch.zeros(2, 2)},
        r"block_tables must be int32, got torch.float32",
    ),
    "dtype of the lengths": ({"context_lens": torch.zeros(2).half()}, r"context_lens must be int32"),
    "device": ({"q": torch.zeros(2, 4, 32, device="meta")}, r"one device, got cpu, meta"),
    "window": ({"window": 0}, r"window must be at least 1 token.*got 0"),
    "splits": ({"num_splits": 0}, r"num_splits must be at least 1.*got 0"),
}


@pytest.mark.parametrize("case", REFUSALS.values(), ids=REFUSALS.keys())
def test_what_does_not_fit_is_refused_with_a_sentence(case):
    inputs, sentence = case
    with pytest.raises(ValueError, match=sentence):
        changed(**inputs)


@pytest.mark.parametrize("block", [-1, 7])
def test_a_block_outside_the_cache_is_refused(block):
    tables = torch.tensor([[0, 1], [2, block]], dtype=INT)
    with pytest.raises(IndexError, match=rf"block_tables\[1, 1\] is {block}.*6 tokens.*0 to 6"):
        changed(block_tables=tables)


def test_a_negative_length_is_refused():
    with pytest.raises(IndexError, match=r"sequence 1: context length -1"):
        changed(context_lens=torch.tensor([5, -1], dtype=INT))
