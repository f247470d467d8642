"""The Triton kernel in the interpreter against the float64 oracle.

test_triton_decode.py runs this file in a process of its own; to run it alone:
`TRITON_INTERPRET=1 python -m pytest tests/interpreted_cases.py`.

A program takes 15 to 40 ms here and a tile 8 ms more, so shapes are the smallest that can go wrong.
"""

import math

import pytest
import torch
from attention_batch import Batch
from sparse_memory import far_apart

from kvlab.attention import paged_decode
from kvlab.contenders import CONTIGUOUS
from kvlab.timing_sweeps import SLOW, TILE, Point, measure_point
from kvlab.traffic import DecodeShape
from kvlab.triton_decode import INTERPRETED, triton_decode
from kvlab.triton_setup import CONFIGS

# Products of float16 and bfloat16 are exact in float32 here; what is left is the rounding of the output.
TOLERANCE = {torch.float32: 2e-6, torch.float16: 6e-4, torch.bfloat16: 1.2e-2}


def assert_right(batch, scales=None, **options):
    scales = scales or {}
    splits = {"num_splits": options.pop("num_splits")} if "num_splits" in options else {}
    output = batch.decode(backend="triton", **splits, **options, **scales)
    assert output.dtype == batch.q.dtype and not output.isnan().any()
    error = (output.double() - batch.oracle(**options, **scales)).abs().max()
    assert error <= TOLERANCE[batch.q.dtype]


def test_this_process_interprets():
    assert INTERPRETED


@pytest.mark.parametrize("block_size", [1, 2, 3, 4, 8, 16, 32])
def test_block_sizes_and_lengths(block_size):
    lengths = sorted({0, 1, max(1, block_size - 1), block_size, block_size + 1, 37})
    assert_right(Batch(lengths, block_size, group=2))


@pytest.mark.parametrize("block_size", [3, 16])
def test_a_long_sequence(block_size):
    assert_right(Batch([1024], block_size, group=4), num_splits=2)


@pytest.mark.parametrize("length", [63, 64, 65, 128, 129])
def test_around_the_tile(length):
    assert_right(Batch([length], 16))


@pytest.mark.parametrize("num_splits", [1, 2, 4])
def test_splits(num_splits):
    """With 4 splits the lengths 0, 1 and 70 leave some empty."""
    assert_right(Batch([0, 1, 70, 200], 16), num_splits=num_splits)


@pytest.mark.parametrize("window", [1, 4, 5, 36, 37, 100])
def test_window(window):
    batch = Batch([0, 37, 5], 4)
    for row in (1, 2):  # what lies wholly before the window is never followed
        batch.tables[row, : max(0, batch.lengths[row] - window) // 4] = -7
    assert_right(batch, window=window)


def test_window_and_splits():
    assert_right(Batch([150, 20], 16), window=100, num_splits=2)


@pytest.mark.parametrize("group", [1, 3, 4, 5, 7, 8, 48, 80])
def test_groups(group):
    assert_right(Batch([19], 16, 32, group))


@pytest.mark.parametrize("head_dim", [16, 64, 80, 96, 128, 256])
def test_head_dims(head_dim):
    assert_right(Batch([0, 33], 16, head_dim, 4))


@pytest.mark.parametrize("kv_dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("q_dtype", TOLERANCE)
def test_dtypes(kv_dtype, q_dtype):
    assert_right(Batch([37], 8, 32, 4, kv_dtype, q_dtype))


@pytest.mark.parametrize("q_dtype", TOLERANCE)
def test_float8_with_its_scales(q_dtype):
    """vLLM issue 42580: scales that were dropped on one path."""
    batch = Batch([37, 5], 8, 32, 4, torch.float8_e4m3fn, q_dtype)
    assert_right(batch, {"k_scale": 2.0, "v_scale": 0.5})
    assert_right(batch, {"k_scale": 2.0, "v_scale": 0.5}, num_splits=2)


def test_scale():
    assert_right(Batch([9], 4), scale=0.5)


def test_nan_in_a_used_slot_is_seen():
    """Batch poisons every unused slot; this shows that poison in a used one does arrive."""
    batch = Batch([20], 16, 32, 2)
    batch.v_cache[batch.tables[0, 0], 3, 1, 5] = math.nan
    output = batch.decode(backend="triton")
    assert output[0, 2:, 5].isnan().all() and output.isnan().sum() == 2


def test_strides_are_honoured():
    batch = Batch([37, 16], 16, 32, 4)
    batch.k_cache = batch.k_cache.transpose(2, 3).contiguous().transpose(2, 3)  # a head's numbers apart
    wide = torch.full((*batch.v_cache.shape[:2], 5, 48), math.nan)
    wide[:, :, 2:4, 8:40] = batch.v_cache
    batch.v_cache = wide[:, :, 2:4, 8:40]
    batch.q = batch.q.transpose(0, 1).contiguous().transpose(0, 1)
    batch.tables = batch.tables.T.contiguous().T
    batch.lens = torch.stack([batch.lens, batch.lens], dim=1)[:, 0]
    assert_right(batch)


def test_a_cache_of_more_than_2_31_numbers():
    batch = Batch([4], 4, 32, 4, torch.float16)
    batch.tables[0, 0] = 3
    batch.k_cache[3], batch.v_cache[3] = batch.k[0], batch.v[0]
    batch.k_cache, batch.v_cache = far_apart(batch.k_cache), far_apart(batch.v_cache)
    assert batch.k_cache.stride(0) * 3 > 2**31
    assert_right(batch)


@pytest.mark.parametrize("config", CONFIGS)
def test_every_declared_config(config):
    batch = Batch([37], 16, group=2)
    options = {"scale": 32**-0.5, "window": None, "k_scale": 1.0, "v_scale": 1.0, "num_splits": None}
    tensors = (batch.q, batch.k_cache, batch.v_cache, batch.tables, batch.lens)
    output = triton_decode(*tensors, **options, config=config)
    assert (output.double() - batch.oracle()).abs().max() <= TOLERANCE[torch.float32]


def test_a_tile_is_timed_beside_the_others():
    shape = DecodeShape(1, 24, 2, 1, 32, dtype="float32")
    row = measure_point(Point(TILE, "32/4/3", shape, without=SLOW, config=(32, 4, 3)), rounds=1)
    assert set(row["contenders"]) == {CONTIGUOUS, "paged, triton"} and row["config"] == (32, 4, 3)


def test_int64_tables_and_no_sequences():
    batch = Batch([5], 4)
    batch.tables, batch.lens = batch.tables.long(), batch.lens.long()
    assert_right(batch)
    caches = (batch.k_cache, batch.v_cache)
    none = paged_decode(batch.q[:0], *caches, batch.tables[:0], batch.lens[:0], backend="triton")
    assert none.shape == (0, *batch.q.shape[1:])


def test_refusals():
    with pytest.raises(ValueError, match="float32, bfloat16 or float16; use backend='reference'"):
        Batch([5], 4, q_dtype=torch.float64).decode(backend="triton")
    with pytest.raises(ValueError, match="head_dim up to 256, got 512"):
        Batch([5], 4, head_dim=512).decode(backend="triton")
    with pytest.raises(ValueError, match="up to 65535 sequences and splits, got 1 and 70000"):
        Batch([5], 4).decode(backend="triton", num_splits=70000)
    with pytest.raises(IndexError, match="needs a block there"):
        batch = Batch([5], 4)
        batch.tables[0, 1] = 99
        batch.decode(backend="triton")
