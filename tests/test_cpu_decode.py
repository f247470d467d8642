"""The CPU path against the float64 oracle; how walks are cut into parts; what it says when it cannot run."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from attention_batch import Batch
from sparse_memory import far_apart

from kvlab import cpu_decode
from kvlab.attention import paged_decode
from kvlab.cpu_decode import MULTIPLE, SHORTEST, Part, cut, why_not

HERE = Path(__file__).parent
TOLERANCE = {torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 1e-2}
LENGTHS = [0, 1, 15, 16, 17, 31, 32, 33, 37]


def assert_right(batch, scales=None, **options):
    output = batch.decode(backend="cpu", **options, **(scales or {}))
    expected = batch.oracle(**options, **(scales or {}))
    assert output.dtype == batch.q.dtype and not output.isnan().any()
    assert (output.double() - expected).abs().max() <= TOLERANCE[batch.q.dtype]


@pytest.mark.parametrize("block_size", [1, 2, 3, 4, 8, 16, 32])
def test_every_block_size(block_size):
    assert_right(Batch([*LENGTHS, block_size - 1, block_size, block_size + 1], block_size, group=4))


def test_lengths_around_the_walks_tiles():
    from kvlab.cpu_kernel import AHEAD, STEP, TILE

    assert STEP == MULTIPLE
    lengths = [TILE + more for more in (-AHEAD, -1, 0, 1, 2, AHEAD + 1)]
    assert_right(Batch([*lengths, 2 * TILE, 2 * TILE + 1], 16, group=4))


@pytest.mark.parametrize("group", [1, 2, 3, 4, 5, 7, 8, 48])
@pytest.mark.parametrize("head_dim", [32, 80, 96, 256])
def test_groups_and_head_dims(head_dim, group):
    assert_right(Batch([0, 1, 16, 37], 16, head_dim, group))


@pytest.mark.parametrize("kv_dtype", TOLERANCE)
@pytest.mark.parametrize("q_dtype", TOLERANCE)
def test_dtypes_and_their_scales(kv_dtype, q_dtype):
    batch = Batch([1, 16, 33, 400], 16, 64, 4, kv_dtype, q_dtype)
    assert_right(batch, {"k_scale": 2.0, "v_scale": 0.5})


@pytest.mark.parametrize("num_splits", [1, 2, 3, 4, 50])
def test_splits(num_splits):
    batch = Batch([0, 1, 5, 100, 1024], 16, 64, 4)
    output = batch.decode(backend="cpu", num_splits=num_splits)
    assert (output.double() - batch.oracle()).abs().max() <= TOLERANCE[torch.float32]


@pytest.mark.parametrize("window", [1, 2, 15, 16, 17, 36, 1000])
def test_window(window):
    assert_right(Batch(LENGTHS, 8, group=3), window=window)


def test_several_threads_give_what_one_gives():
    batch = Batch([3000, 0, 17, 700], 16, 64, 4)
    one = batch.decode(backend="cpu", num_splits=5)
    torch.set_num_threads(3)
    try:
        assert torch.equal(batch.decode(backend="cpu", num_splits=5), one)
    finally:
        torch.set_num_threads(1)


FORKED = """
import os, sys
import torch
from attention_batch import Batch

torch.set_num_threads(2)
batch = Batch([700, 700], 16, 32, 4)
expected = batch.decode(backend="cpu")
child = os.fork()
if child == 0:
    os._exit(0 if batch.decode(backend="cpu").equal(expected) else 1)
sys.exit(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_has_threads_of_its_own():
    subprocess.run([sys.executable, "-c", FORKED], cwd=HERE, check=True, timeout=120)


def test_scores_far_apart_and_large():
    """Weights down to 0 and scores far outside what exp() holds."""
    batch = Batch([64], 16, 32, 4)
    batch.q *= 500
    assert_right(batch)


def test_nan_in_a_used_slot_is_seen():
    batch = Batch([20, 20], 16, 32, 4)
    batch.k_cache[batch.tables[0, 0], 3, 1, 5] = math.nan
    output = batch.decode(backend="cpu")
    assert output[0, 4:].isnan().all() and not output[0, :4].isnan().any() and not output[1].isnan().any()


def test_strides_are_honoured():
    """Caches that are views: heads before slots in memory, and a slice of a wider cache."""
    batch = Batch([0, 37, 16], 16, 32, 4)
    expected = batch.decode(backend="cpu")
    batch.k_cache = batch.k_cache.transpose(1, 2).contiguous().transpose(1, 2)
    wide = torch.full((*batch.v_cache.shape[:2], 5, 48), math.nan)
    wide[:, :, 2:4, 8:40] = batch.v_cache
    batch.v_cache = wide[:, :, 2:4, 8:40]
    batch.q = batch.q.transpose(0, 1).contiguous().transpose(0, 1)
    batch.tables = batch.tables.T.contiguous().T
    assert torch.equal(batch.decode(backend="cpu"), expected)


def test_a_cache_of_more_than_2_31_numbers():
    batch = Batch([4], 4, 32, 4, torch.float16)
    batch.tables[0, 0] = 3
    batch.k_cache[3], batch.v_cache[3] = batch.k[0], batch.v[0]
    batch.k_cache, batch.v_cache = far_apart(batch.k_cache), far_apart(batch.v_cache)
    assert batch.k_cache.stride(0) * 3 > 2**31
    assert_right(batch)


def test_parts():
    assert cut([0, 10, 5], None, None, 2) == [Part(1, 0, 10), Part(2, 0, 5)]
    assert cut([10, 3], 4, None, 2) == [Part(0, 6, 10), Part(1, 0, 3)]
    assert cut([10, 1], None, 3, 1) == [Part(0, 0, 3), Part(0, 3, 6), Part(0, 6, 10), Part(1, 0, 1)]
    long = cut([64 * 1024], None, None, 2)
    assert len(long) == 8 and {part.end - part.begin for part in long} == {8 * 1024}
    assert len(cut([SHORTEST * 4] * 2, None, None, 64)) == 8


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"q_dtype": torch.float64}, "computes in float32, and q is float64"),
        ({"kv_dtype": torch.float8_e4m3fn}, "not torch.float8_e4m3fn"),
        ({"head_dim": 24}, "head_dim must be a multiple of 16, not 24"),
    ],
)
def test_what_it_cannot_run_it_says_and_auto_does_not_take(change, says):
    batch = Batch([5, 6], 4, **{"head_dim": 32, "group": 2, **change})
    with pytest.raises(ValueError, match=says):
        batch.decode(backend="cpu")
    assert (batch.decode().double() - batch.oracle()).abs().max() < 1e-5


def test_numbers_of_a_head_apart():
    batch = Batch([5, 6], 4)
    batch.k_cache = batch.k_cache.transpose(2, 3).contiguous().transpose(2, 3)
    with pytest.raises(ValueError, match="next to each other"):
        batch.decode(backend="cpu")


def test_nothing_to_attend_to():
    batch = Batch([0, 0], 4)
    assert torch.equal(batch.decode(backend="cpu"), torch.zeros_like(batch.q))
    empty = torch.empty(0, 2, 32)
    tables, lens = torch.empty(0, 1, dtype=torch.int32), torch.empty(0, dtype=torch.int32)
    assert paged_decode(empty, batch.k_cache, batch.v_cache, tables, lens, backend="cpu").shape == (0, 2, 32)


def test_auto_takes_it_on_a_cpu(monkeypatch):
    from kvlab import backends

    taken = []
    decode = backends.BACKENDS["cpu"].decode
    spy = backends.Backend(lambda *a, **o: taken.append(1) or decode(*a, **o), backends.BACKENDS["cpu"].suits)
    monkeypatch.setitem(backends.BACKENDS, "cpu", spy)
    assert_right(Batch([5], 4))
    Batch([5], 4).decode()
    assert taken == [1, 1]


def test_why_not_without_numba(monkeypatch):
    monkeypatch.setattr(cpu_decode, "_has_numba", lambda: False)
    batch = Batch([5], 4)
    assert "needs numba" in why_not(batch.q, batch.k_cache, batch.v_cache)
