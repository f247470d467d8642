"""Bytes and operations of a decode step against figures worked out by hand and against real tensors."""

import pytest
import torch

from kvlab.kv_cache import ContiguousKVCache
from kvlab.traffic import ELEMENT_BYTES, DecodeShape, grow_bytes


def test_the_published_step_of_64_sequences_of_8k():
    shape = DecodeShape(64, 8192, 32, 8, 128, 16, "bfloat16")
    assert shape.kv_bytes == 2_147_483_648
    assert shape.kv_bytes / 4.8e12 == pytest.approx(447e-6, rel=1e-3)
    assert shape.intensity == pytest.approx(4, rel=0.01)  # 2 operations for 4 heads on 2 bytes
    assert shape._replace(dtype="float8_e4m3fn").kv_bytes == shape.kv_bytes / 2
    assert shape._replace(num_kv_heads=32).kv_bytes == shape.kv_bytes * 4


def test_the_bytes_are_those_of_the_tensors():
    shape = DecodeShape(3, 37, 8, 2, 64, 16, "float16")
    k = torch.empty(3, 37, 2, 64, dtype=torch.float16)
    q = torch.empty(3, 8, 64, dtype=torch.float16)
    tables, lens = torch.empty(3, 3, dtype=torch.int32), torch.empty(3, dtype=torch.int32)
    assert shape.must_move == 2 * k.nbytes + 2 * q.nbytes + tables.nbytes + lens.nbytes
    assert shape.operations == 2 * (2 * 3 * 8 * 37 * 64)


def test_float8_leaves_the_query_as_it_is():
    wide, narrow = DecodeShape(2, 8, dtype="bfloat16"), DecodeShape(2, 8, dtype="float8_e4m3fn")
    assert wide.query_bytes == narrow.query_bytes


def test_sizes_of_numbers_are_torchs():
    assert {name: getattr(torch, name).itemsize for name in ELEMENT_BYTES} == ELEMENT_BYTES


def test_growing_costs_what_a_contiguous_cache_counts():
    shape = DecodeShape(1, 9, 4, 2, 8)
    cache = ContiguousKVCache(1, 2, 8)
    for _ in range(9):
        before = cache.bytes_copied
        cache.append(0, torch.zeros(1, 2, 8), torch.zeros(1, 2, 8))
    assert grow_bytes(shape) == (cache.bytes_copied - before, cache.peak_bytes)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"dtype": "int8"}, "dtype must be one of float32"),
        ({"num_kv_heads": 5}, "32 query heads cannot share 5 KV heads"),
        ({"context": 0}, "context must be a whole number of at least 1, not 0"),
        ({"num_seqs": 1.5}, "num_seqs must be a whole number"),
    ],
)
def test_no_such_step(change, says):
    with pytest.raises(ValueError, match=says):
        DecodeShape(2, 64)._replace(**change).check()
