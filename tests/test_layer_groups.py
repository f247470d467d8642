"""Layers of several kinds in one pool: groups, blocks per request, LCM and GCD."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_configs import QWEN_27B_CONFIG

from kvlab.layer_groups import (
    Group,
    Plan,
    hash_block_size,
    hashes_per_block,
    layers_in_a_group,
    plan_groups,
)
from kvlab.layer_kinds import Layer
from kvlab.model_shapes import named_shape
from kvlab.sizing import ModelShape

FULL = Layer("full", 8, 128, 128)
SLIDING = Layer("sliding", 8, 128, 128, 1024)
CHUNKED = Layer("chunked", 8, 128, 128, 1024)


def test_one_full_and_five_sliding_groups_as_run_on_vllm():
    plan = plan_groups([FULL] * 6 + [SLIDING] * 30, 16, 2)
    assert [(g.kind, g.num_layers) for g in plan.groups] == [("full", 6)] + [("sliding", 6)] * 5
    assert [g.blocks_per_request(8192) for g in plan.groups] == [512] + [193] * 5
    assert plan.blocks_per_request(8192, 2048) == 512 + 5 * 193
    assert f"{plan.concurrency(10_000, 8192):.2f}" == "6.77"
    assert plan.logged_tokens(10_000, 8192) == 55_463


def test_the_old_formula_undercounts_hybrid_models():
    plan = plan_groups([FULL] * 6 + [SLIDING] * 30, 16, 2)
    assert plan.tokens_by_old_formula(10_000) == 26_656
    uniform = plan_groups([FULL] * 6, 16, 2)
    assert uniform.tokens_by_old_formula(10_000) == uniform.logged_tokens(10_000, 8192) == 160_000


def test_logged_tokens_are_those_of_floating_point():
    plan = plan_groups([FULL], 16, 2)
    assert plan.blocks_per_request(16 * 49) == 49
    assert plan.logged_tokens(1, 16 * 49) == int(1 / 49 * 784) == 15


def test_chunked_layers_need_no_extra_block():
    assert CHUNKED.blocks_for(8192, 16, 2048) == (1024 + 2048) // 16
    assert SLIDING.blocks_for(8192, 16, 2048) == 193
    assert (CHUNKED.blocks_for(8192, 16, 2049), SLIDING.blocks_for(8192, 16, 2050)) == (193, 194)
    assert SLIDING.blocks_for(8192, 16, 2049) == SLIDING.blocks_for(8192, 16, 2048) == 193
    assert SLIDING.blocks_for(16, 16, 2048) == 2
    assert CHUNKED.blocks_for(16, 16, 2048) == FULL.blocks_for(16, 16, 2048) == 1


def test_full_attention_is_the_first_group_whatever_the_order_of_the_layers():
    assert plan_groups([CHUNKED, SLIDING, FULL], 16, 2).groups[0].kind == "full"


def test_the_block_is_the_page_times_the_layers_of_one_group():
    plan = plan_groups([FULL] * 6 + [SLIDING] * 30, 16, 2)
    assert plan.block_bytes == 6 * 65_536
    assert plan.num_blocks(10_000 * plan.block_bytes + 1) == 10_000


@pytest.mark.parametrize(
    ("counts", "expected"), [([6, 30], 6), ([10, 12], 12), ([10, 15], 10), ([10, 14], 14), ([7], 7)]
)
def test_layers_in_a_group(counts, expected):
    assert layers_in_a_group(counts) == expected


def test_the_last_group_of_a_kind_may_be_smaller():
    plan = plan_groups([FULL] * 4 + [SLIDING] * 22, 16, 2)
    assert [g.num_layers for g in plan.groups] == [4, 4, 4, 4, 4, 4, 2]


def test_a_linear_state_raises_the_block_size():
    """vLLM logs these sizes: 544 with a padding of 1.49 % for Qwen3-Next-80B, 784 for Qwen3.6-27B."""
    plan = named_shape("qwen3-next-80b").plan(16)
    state = 3 * 8192 * 2 + 32 * 128 * 128 * 2
    assert plan.block_size == 544
    assert f"{plan.groups[0].page_bytes / state - 1:.2%}" == "1.49%"
    assert ModelShape.from_config(QWEN_27B_CONFIG).plan(16).block_size == 784
    small = {**QWEN_27B_CONFIG, "num_hidden_layers": 24, "num_key_value_heads": 2, "num_attention_heads": 8}
    plan = ModelShape.from_config({**small, "linear_num_value_heads": 16}).plan(16)
    assert plan.block_size == 544
    assert f"{plan.groups[0].page_bytes / (3 * 6144 * 2 + 16 * 128 * 128 * 4) - 1:.2%}" == "2.64%"


def test_a_linear_state_is_one_block_a_request():
    plan = named_shape("qwen3-next-80b").plan(16)
    assert [g.blocks_per_request(544 * 10) for g in plan.groups] == [10, 1, 1, 1]
    assert plan.blocks_per_request(544 * 10, state_blocks=2) == 16
    assert named_shape("qwen3-next-80b").plan(1024).block_size == 1024


def test_an_unknown_state_is_an_error_only_when_it_is_needed():
    shape = ModelShape((Layer("full", 1, 8, 8), Layer("linear")), "float16")
    assert shape.kv_bytes_per_token() == 32
    with pytest.raises(ValueError, match="linear_num_key_heads"):
        shape.block_bytes(16)


def test_pages_of_different_size_are_made_one_by_the_block_size():
    wide = Layer("full", 8, 256, 256)
    plan = plan_groups([wide] * 2 + [SLIDING] * 2, 16, 2)
    assert [(g.kind, g.block_size, g.page_bytes) for g in plan.groups] == [
        ("full", 16, 131_072),
        ("sliding", 32, 131_072),
    ]
    assert plan.scheduler_block_size() == 32
    assert plan.hash_block_size() == 16
    with pytest.raises(ValueError, match="does not divide the largest page"):
        plan_groups([Layer("full", 8, 192, 192), SLIDING], 16, 2)


def test_full_layers_with_different_heads_are_one_group():
    plan = plan_groups([Layer("full", 8, 128, 128), Layer("full", 2, 64, 64)], 16, 2)
    assert not plan.is_hybrid
    assert plan.block_bytes == 16 * 2 * 2 * (8 * 128 + 2 * 64)


def test_lcm_and_gcd():
    def group(size, kind="full"):
        layer = Layer("linear", state=((1, None),)) if kind == "linear" else FULL
        return Group(layer, 1, size, 1)

    plan = Plan((group(16), group(24)), 1, 1)
    assert plan.scheduler_block_size() == 48
    assert plan.hash_block_size() == 8
    assert plan.hash_block_size(4) == 4
    mixed = Plan((group(16), group(544, "linear")), 1, 1)
    assert mixed.scheduler_block_size(context_parallel=2) == 544
    assert [g.effective_block_size(2) for g in mixed.groups] == [32, 544]
    assert Plan((group(16),), 1, 1).scheduler_block_size(4) == 64


def test_an_override_must_divide_every_group():
    with pytest.raises(
        ValueError, match=r"does not divide the block of group 1 \(24 tokens\). Choose"
    ) as error:
        hash_block_size([16, 24, 32], 16)
    assert "group 0" not in str(error.value) and "divisor of 8" in str(error.value)
    for bad in (0, -4):
        with pytest.raises(ValueError, match="at least 1"):
            hash_block_size([16], bad)
    with pytest.raises(ValueError, match="at least 1"):
        hash_block_size([])


def test_a_coarser_group_takes_every_kth_hash():
    assert [hashes_per_block(size, 8) for size in (8, 16, 24)] == [1, 2, 3]


def test_context_parallelism_scales_full_attention_only():
    full, linear = Group(FULL, 1, 16, 1), Group(Layer("linear", state=((1, None),)), 1, 16, 1)
    assert full.blocks_per_request(8192, context_parallel=4) == 128
    assert linear.blocks_per_request(8192, context_parallel=4) == 1
    with pytest.raises(ValueError, match="does not work with sliding"):
        Group(SLIDING, 1, 16, 1).blocks_per_request(8192, context_parallel=2)


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="at least one layer"):
        plan_groups([], 16, 2)
    with pytest.raises(ValueError, match="at least 1 token"):
        plan_groups([FULL], 16, 2).blocks_per_request(0)
    with pytest.raises(ValueError, match="not a kind of layer"):
        Layer("striped", 1, 1, 1)
    with pytest.raises(ValueError, match="window of at least 1"):
        Layer("sliding", 1, 1, 1)
    with pytest.raises(ValueError, match="KV heads and a head size"):
        Layer("full", 0, 128, 128)


@given(st.lists(st.integers(1, 600), min_size=1, max_size=4))
def test_hashes_and_schedule_fit_every_group(sizes):
    plan = Plan(tuple(Group(FULL, 1, size, 1) for size in sizes), 1, 1)
    assert all(size % plan.hash_block_size() == 0 for size in sizes)
    assert all(plan.scheduler_block_size() % size == 0 for size in sizes)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 4096))
def test_every_layer_is_in_a_group(full, sliding, length):
    plan = plan_groups([FULL] * full + [SLIDING] * sliding, 16, 2)
    for kind, count in (("full", full), ("sliding", sliding)):
        assert sum(g.num_layers for g in plan.groups if g.kind == kind) == count
    assert all(g.num_layers <= plan.layers_per_group for g in plan.groups)
    blocks = plan.blocks_per_request(length)
    assert plan.concurrency(10_000, length) == 10_000 / blocks
