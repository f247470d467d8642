"""The numbers of the course's two articles and of a real start-up log, exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.model_shapes import named_shape
from kvlab.sizing import (
    ByteRange,
    ModelShape,
    budget_for_requests,
    budgets_that_fit,
    fragmentation_table,
    grow_by_copy,
    last_block_waste,
    memory_account,
    shared_prefix,
    table_bytes,
    waste_bound,
)
from kvlab.units import parse_bytes

GIB = 1 << 30
QWEN = ModelShape.from_config(
    {
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "hidden_size": 3584,
        "torch_dtype": "float16",
    }
)
PRINTED = 6_103_285_709  # the byte count that the article prints beside "5.68 GiB"


def test_bytes_per_token_and_per_block():
    assert QWEN.kv_bytes_per_token() == QWEN.kv_bytes_per_token("float16") == 57_344
    assert QWEN.page_bytes(16) == 32_768
    assert QWEN.block_bytes(16) == 917_504
    assert (QWEN.num_layers, QWEN.num_kv_heads, QWEN.head_dim, QWEN.num_query_heads) == (28, 4, 128, 28)


def test_blocks_in_the_budget_of_the_log():
    assert QWEN.num_blocks(PRINTED, 16) == 6_652
    assert 6_652 * QWEN.block_bytes(16) == 6_103_236_608
    assert QWEN.remainder_bytes(PRINTED, 16) == 49_101
    assert QWEN.capacity_tokens(PRINTED, 16) == 106_432
    assert QWEN.max_concurrency(PRINTED, 16, 8192) == 6_652 / 512
    assert f"{6_652 / 512:.2f}" == "12.99"


def test_fp8_doubles_the_capacity():
    available = 6_103_695_360
    assert QWEN.kv_bytes_per_token("fp8") == 28_672
    assert QWEN.num_blocks(available, 16, "fp8") == 13_305
    assert QWEN.capacity_tokens(available, 16, "fp8") == 212_880
    assert f"{QWEN.max_concurrency(available, 16, 8192, 'fp8'):.2f}" == "25.99"
    assert QWEN.num_blocks(available, 16) == 6_652


def test_which_budgets_fit_both_logs():
    both = budgets_that_fit((6_652, QWEN.block_bytes(16)), (13_305, QWEN.block_bytes(16, "fp8")))
    assert both == ByteRange(6_103_695_360, 6_104_154_112)
    for budget in (both.low, both.high - 1):
        assert QWEN.num_blocks(budget, 16) == 6_652 and QWEN.num_blocks(budget, 16, "fp8") == 13_305
    assert QWEN.num_blocks(both.low - 1, 16, "fp8") == 13_304
    assert QWEN.num_blocks(both.high, 16) == 6_653


def test_a_budget_for_sixteen_requests_of_8k():
    assert 16 * 8192 == 131_072
    assert budget_for_requests(16, 8192, 16, QWEN.block_bytes(16)) == 7 * GIB


def test_tail_waste():
    assert last_block_waste(100, 16) == 12
    assert waste_bound(16) == 15
    assert f"{15 / 8192:.2%}" == "0.18%"
    assert last_block_waste(100, 8) * 3 == 12
    row = fragmentation_table([100], 16)[0]
    assert (row.share_of_tokens, row.slots) == (0.12, 112)


def test_block_tables():
    assert table_bytes(8192, 16) == 2_048
    assert table_bytes(8192, 8) == 2 * table_bytes(8192, 16)
    per_layer = table_bytes(8192, 16, num_tables=28)
    assert per_layer == 57_344
    assert f"{per_layer / (8192 * QWEN.kv_bytes_per_token()):.3%}" == "0.012%"


def test_growing_by_copy():
    cost = grow_by_copy(8192, QWEN.kv_bytes_per_token(), bandwidth=859e9)
    assert cost.bytes_moved == 469_762_048
    assert f"{cost.seconds * 1e3:.2f}" == "0.55"
    assert cost.peak_bytes == (8192 + 8193) * 57_344


def test_a_prefix_shared_by_sixteen():
    saving = shared_prefix(2000, 16, QWEN.kv_bytes_per_token(), block_size=16)
    assert saving.counted_bytes == 1_835_008_000
    assert saving.saved_bytes * 16 == saving.counted_bytes * 15
    assert saving.stored_bytes == 114_688_000


def test_the_three_way_account():
    account = memory_account(parse_bytes("23.99GiB"), "0.9", parse_bytes("14.19GiB"), parse_bytes("5.68GiB"))
    shown = [f"{part / GIB:.2f}" for part in (account.budget, account.weights, account.kv, account.rest)]
    assert shown == ["21.59", "14.19", "5.68", "1.72"]
    assert account.weights + account.kv + account.rest + account.outside == account.total


def test_a_hybrid_model_is_not_four_times_as_large():
    shape = named_shape("qwen3.5-4b")
    assert (shape.num_layers, len(shape.attention_layers)) == (32, 8)
    assert shape.kv_bytes_per_token("bfloat16") == 32_768
    assert shape.kv_bytes_per_token("bfloat16") * 4 == 131_072


def test_the_second_article():
    shape = named_shape("llama-3.1-8b")
    assert shape.kv_bytes_per_token("bfloat16") == 128 * 1024
    assert shape.request_bytes(8192, "bfloat16") == GIB


def test_opt_13b_of_the_paper():
    shape = named_shape("opt-13b")
    assert shape.kv_bytes_per_token() == 819_200
    assert 12 * GIB // shape.kv_bytes_per_token() == 15_728
    assert shape.max_model_len == 2_048


def test_vllm_page_of_eight_heads():
    shape = named_shape("llama-3.1-8b")
    assert shape.page_bytes(16, "bfloat16") == 65_536


def test_vllm_full_attention_of_10_000_blocks():
    shape = named_shape("llama-3.1-8b")
    available = 10_000 * shape.block_bytes(16)
    concurrency = shape.max_concurrency(available, 16, 8192)
    assert f"{concurrency:.2f}" == "19.53"
    assert int(concurrency * 8192) == shape.capacity_tokens(available, 16) == 160_000


def test_counting_query_heads_would_be_seven_times_too_much():
    wrong = ModelShape.from_config(
        {"num_hidden_layers": 28, "num_attention_heads": 28, "hidden_size": 3584, "torch_dtype": "float16"}
    )
    assert wrong.kv_bytes_per_token() == 7 * QWEN.kv_bytes_per_token()


def test_ranks_share_the_kv_heads():
    assert QWEN.per_rank(2).kv_bytes_per_token() * 2 == 57_344
    assert QWEN.per_rank(4).num_kv_heads == QWEN.per_rank(8).num_kv_heads == 1
    latent = named_shape("deepseek-v3")
    assert latent.per_rank(8).kv_bytes_per_token() == latent.kv_bytes_per_token() == 61 * 576 * 2
    with pytest.raises(ValueError, match="4 KV heads cannot be divided over 3"):
        QWEN.per_rank(3)
    with pytest.raises(ValueError, match="at least 1"):
        QWEN.per_rank(0)


def test_windows_bound_what_a_request_keeps():
    shape = named_shape("mistral-7b-v0.1")
    assert shape.request_bytes(4096) == shape.request_bytes(100_000) == 4096 * 131_072
    with pytest.raises(ValueError, match="layers that forget"):
        shape.capacity_tokens(GIB, 16)


def test_a_state_counts_once_whatever_the_length():
    shape = named_shape("qwen3.5-4b")
    state = 24 * (8192 * 3 * 2 + 32 * 128 * 128 * 4)
    assert state == 51_511_296  # the same figure from an unrelated open-source planner
    for length in (1, 1000):
        assert shape.request_bytes(length) == length * 32_768 + state


def test_a_missing_dtype_is_asked_for():
    shape = ModelShape.from_config({"num_hidden_layers": 1, "num_attention_heads": 1, "hidden_size": 8})
    with pytest.raises(ValueError, match="names no dtype"):
        shape.kv_bytes_per_token()
    assert shape.kv_bytes_per_token("float16") == 32
    with pytest.raises(ValueError, match="at least 1 token"):
        shape.block_bytes(0, "float16")


@given(st.integers(0, 10**12), st.integers(1, 256), st.sampled_from(["float16", "fp8", "float32"]))
def test_blocks_and_remainder_are_the_budget(available, block_size, dtype):
    block = QWEN.block_bytes(block_size, dtype)
    blocks, rest = (
        QWEN.num_blocks(available, block_size, dtype),
        QWEN.remainder_bytes(available, block_size, dtype),
    )
    assert blocks * block + rest == available and 0 <= rest < block
