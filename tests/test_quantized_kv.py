"""The float8 cache: exactly half the bytes, scales that cancel out, and attention that is nearly the same."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kvlab import BlockManager, ModelShape, PagedKVCache, attention_oracle
from kvlab.quantized_kv import FP8, LARGEST, QuantizedKVCache, dequantize, head_scales, quantize

TABLE = torch.tensor([[5, 2, 7, 0]], dtype=torch.int32)  # [S, max_blocks]


def filled(scales=None, seed=0, length=14, spread=1.0):
    """A cache with one sequence of random tokens, and the tokens: k, v [T, Hkv, D]."""
    torch.manual_seed(seed)
    cache = QuantizedKVCache(1, 8, 4, 2, 16)
    k, v = (torch.randn(length, 2, 16) * spread for _ in range(2))
    if scales == "calibrated":
        cache.calibrate(0, k, v)
    slots = [(int(TABLE[0, t // 4]), t % 4) for t in range(length)]
    cache.write(0, slots, k, v)
    return cache, k, v


def test_capacity_is_exactly_doubled():
    """Twice the blocks in the same bytes; a 7B model's 5.68 GiB hold 212,880 tokens instead of 106,432."""
    for blocks in (1, 7, 100):
        half = PagedKVCache(3, blocks, 16, 2, 8, torch.float16)
        assert QuantizedKVCache(3, 2 * blocks, 16, 2, 8).nbytes == half.nbytes
        assert QuantizedKVCache(3, blocks, 16, 2, 8).nbytes * 2 == half.nbytes
    config = {
        "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "head_dim": 128,
        "hidden_size": 3584, "model_type": "qwen2", "torch_dtype": "float16",
    }  # fmt: skip
    shape = ModelShape.from_config(config)
    assert shape.kv_bytes_per_token("float16") == 2 * shape.kv_bytes_per_token("float8_e4m3fn") == 57_344
    available = 6_103_700_000
    assert shape.num_blocks(available, 16, "float16") == 6652
    assert shape.num_blocks(available, 16, "float8_e4m3fn") == 13_305


@given(st.floats(-448, 448), st.sampled_from([0.25, 1.0, 3.0]))
def test_what_comes_back_is_within_a_sixteenth(number, scale):
    """3 fraction bits: half a step is 1/16 of the number; below 2**-6 the steps are 2**-9."""
    tokens, scales = torch.full((1, 1, 1), number * scale), torch.tensor([scale])
    back = float(dequantize(quantize(tokens, scales), scales))
    assert abs(back - float(tokens)) <= max(abs(float(tokens)) / 16, 2**-10 * scale) * (1 + 1e-6)


def test_too_large_numbers_saturate_and_are_counted():
    cache = QuantizedKVCache(1, 1, 4, 1, 2)
    k = torch.tensor([[[1000.0, -448.0]], [[-449.0, 0.0]]])  # [T, Hkv, D]
    cache.write(0, [(0, 0), (0, 1)], k, torch.zeros_like(k))
    assert cache.gather(0, [0], 2)[0].flatten().tolist() == [448, -448, -448, 0]
    assert cache.saturated == 2


def test_scales_make_the_largest_number_the_largest_float8():
    tokens = torch.tensor([[[3.0, -7.0], [0.0, 0.0]]])  # [T, Hkv, D]
    scales = head_scales(tokens)
    assert scales.tolist() == [pytest.approx(7 / LARGEST), 1.0]
    assert quantize(tokens, scales).dtype == FP8
    assert float(quantize(tokens, scales).float().abs().max()) == LARGEST


@pytest.mark.parametrize("scales", [None, "calibrated"])
@pytest.mark.parametrize("backend", ["reference", "auto"])
def test_decode_equals_the_oracle_over_what_is_stored(scales, backend):
    """Both scales are applied outside the walk: the result is that of the dequantised K and V."""
    cache, _, _ = filled(scales)
    q = torch.randn(1, 6, 16)  # [S, Hq, D]
    lens = torch.tensor([14], dtype=torch.int32)
    got = cache.decode(0, q, TABLE, lens, backend=backend)
    k, v = cache.gather(0, TABLE[0].tolist(), 14)  # each [T, Hkv, D]
    torch.testing.assert_close(got[0].double(), attention_oracle(q[0], k, v), atol=1e-5, rtol=0)
    windowed = cache.decode(0, q, TABLE, lens, window=5)
    torch.testing.assert_close(
        windowed[0].double(), attention_oracle(q[0], k, v, window=5), atol=1e-5, rtol=0
    )


def test_heads_have_scales_of_their_own():
    """One head a thousand times larger than the other: with its own scale each keeps its precision."""
    torch.manual_seed(3)
    k, v = (torch.randn(8, 2, 16) * torch.tensor([1e-3, 1e3])[:, None] for _ in range(2))  # [T, Hkv, D]
    cache = QuantizedKVCache(1, 2, 4, 2, 16)
    cache.calibrate(0, k, v)
    slots = BlockManager(2, 4).append("A", 8).slots
    cache.write(0, slots, k, v)
    plain = QuantizedKVCache(1, 2, 4, 2, 16)
    plain.write(0, slots, k, v)
    for head in (0, 1):
        back = [c.gather(0, [0, 1], 8)[1][:, head] for c in (cache, plain)]  # each [T, D]
        error = [float((b - v[:, head]).norm() / v[:, head].norm()) for b in back]
        print(f"head {head}: relative error {error[0]:.3f} with its scale, {error[1]:.3f} without")
        assert error[0] < 0.04 < 0.2 < error[1]
    assert cache.saturated == 0 < plain.saturated


def test_what_it_does_to_attention_output(capsys):
    """Random K and V: a few percent of the output, less than the error of the single numbers."""
    errors = []
    for seed in range(20):
        cache, k, v = filled("calibrated", seed)
        q = torch.randn(1, 6, 16)  # [S, Hq, D]
        got = cache.decode(0, q, TABLE, torch.tensor([14]), backend="reference")
        exact = attention_oracle(q[0], k, v)  # [Hq, D]
        errors.append(float((got[0] - exact).norm() / exact.norm()))
    mean = sum(errors) / len(errors)
    with capsys.disabled():
        print(f"\nattention output through float8: relative error {mean:.3f}, at most {max(errors):.3f}")
    assert 0.005 < mean < 0.05 and max(errors) < 0.08


def test_copies_take_the_stored_bytes():
    cache, _, _ = filled("calibrated")
    cache.copy([(5, 1, 3)])
    for before, after in zip(cache.gather(0, [5], 3), cache.gather(0, [1], 3), strict=True):
        assert torch.equal(before, after)


def test_scales_that_cannot_be_are_refused():
    cache, _, _ = filled()
    ones = torch.ones(2)
    with pytest.raises(ValueError, match="layer 0 holds tokens already"):
        cache.set_scales(0, ones, ones)
    fresh = QuantizedKVCache(1, 1, 4, 2, 16)
    for bad in (torch.tensor([1.0, 0.0]), torch.tensor([1.0, float("nan")])):
        with pytest.raises(ValueError, match="must be positive and finite"):
            fresh.set_scales(0, ones, bad)
    with pytest.raises(ValueError, match="the cache has 2 KV heads"):
        fresh.set_scales(0, torch.ones(3), ones)
    with pytest.raises(ValueError, match="layer 1 is outside"):
        fresh.set_scales(1, ones, ones)
