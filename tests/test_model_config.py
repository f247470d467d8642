"""Reading config.json: the layouts that models use, and clear errors for odd content."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.model_config import ConfigError
from kvlab.sizing import ModelShape

BASE = {
    "num_hidden_layers": 12,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "hidden_size": 512,
    "torch_dtype": "bfloat16",
}


def kinds(**more) -> str:
    """The kind of each layer by its first letter."""
    return "".join(layer.kind[0] for layer in ModelShape.from_config({**BASE, **more}).layers)


def test_the_head_size_is_given_or_follows_from_hidden_size():
    assert ModelShape.from_config(BASE).head_dim == 64
    assert ModelShape.from_config({**BASE, "head_dim": 128}).head_dim == 128
    assert ModelShape.from_config({**BASE, "head_dim": None}).head_dim == 64


def test_kv_heads_default_to_query_heads():
    without = {key: value for key, value in BASE.items() if key != "num_key_value_heads"}
    assert ModelShape.from_config(without).num_kv_heads == 8
    assert ModelShape.from_config({**without, "multi_query": True}).num_kv_heads == 1
    assert ModelShape.from_config({**without, "num_kv_heads": 4}).num_kv_heads == 4


def test_older_names():
    shape = ModelShape.from_config({"n_layer": 12, "n_head": 12, "n_embd": 768, "n_positions": 1024})
    assert shape.kv_bytes_per_token("float16") == 2 * 12 * 12 * 64 * 2
    assert shape.max_model_len == 1024


def test_a_nested_text_config_is_used():
    nested = {"model_type": "vision", "torch_dtype": "float16", "text_config": {**BASE, "torch_dtype": None}}
    shape = ModelShape.from_config(nested)
    assert (shape.num_layers, shape.dtype) == (12, "float16")
    deeper = {"thinker_config": {"text_config": BASE}, "num_hidden_layers": 99}
    assert ModelShape.from_config(deeper).num_layers == 12


def test_explicit_layer_types():
    types = ["full_attention", "sliding_attention", "chunked_attention", "linear_attention"] * 3
    assert kinds(layer_types=types, sliding_window=64, attention_chunk_size=128) == "fscl" * 3


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, "f" * 12),
        ({"sliding_window": None}, "f" * 12),
        ({"sliding_window": 64}, "s" * 12),
        ({"sliding_window": 64, "use_sliding_window": False}, "f" * 12),
        ({"sliding_window": 64, "use_sliding_window": True, "max_window_layers": 8}, "f" * 8 + "s" * 4),
        ({"sliding_window": 64, "use_sliding_window": False, "max_window_layers": 8}, "f" * 12),
        ({"sliding_window": 64, "model_type": "gemma2"}, "sf" * 6),
        ({"sliding_window": 64, "model_type": "gemma3_text"}, "sssssf" * 2),
        ({"sliding_window": 64, "sliding_window_pattern": 4}, "sssf" * 3),
        ({"full_attention_interval": 4}, "lllf" * 3),
        ({"attention_chunk_size": 64}, "cccf" * 3),
        ({"attention_chunk_size": 64, "no_rope_layers": [1, 0] * 6}, "cf" * 6),
        ({"layers_block_type": ["mamba", "attention"] * 6}, "lf" * 6),
    ],
)
def test_the_rule_of_the_family(more, expected):
    assert kinds(**more) == expected


def test_mla_keeps_one_compressed_vector():
    config = {
        "num_hidden_layers": 2,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "dtype": "bfloat16",
    }
    shape = ModelShape.from_config(config)
    assert shape.kv_bytes_per_token() == 2 * 576 * 2
    assert shape.page_bytes(16) == 16 * 576 * 2


def test_the_state_of_a_gated_delta_net():
    heads = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_conv_kernel_dim": 4}
    sizes = {"linear_key_head_dim": 8, "linear_value_head_dim": 16, "mamba_ssm_dtype": "float32"}
    layer = ModelShape.from_config({**BASE, "full_attention_interval": 4, **heads, **sizes}).layers[0]
    assert layer.state == ((3 * (2 * 16 + 64), None), (64 * 8, "float32"))


def test_the_state_of_mamba_2():
    config = {
        **BASE,
        "layers_block_type": ["mamba", "attention"] * 6,
        "mamba_n_heads": 4,
        "mamba_d_head": 64,
        "mamba_d_state": 128,
        "mamba_n_groups": 1,
        "mamba_d_conv": 4,
    }
    layer = ModelShape.from_config(config).layers[0]
    assert layer.state == ((3 * (256 + 256), None), (256 * 128, None))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"num_hidden_layers": None}, "has no num_hidden_layers or n_layer"),
        ({"num_attention_heads": None}, "has no num_attention_heads"),
        ({"hidden_size": None}, "has no hidden_size"),
        ({"num_hidden_layers": "28"}, r"num_hidden_layers .* is '28' \(str\)"),
        ({"num_hidden_layers": -28}, "at least 1, but is '-28'"),
        ({"num_hidden_layers": 0}, "at least 1"),
        ({"num_hidden_layers": True}, "bool"),
        ({"num_hidden_layers": 28.0}, "float"),
        ({"num_key_value_heads": 3}, "cannot share 3 KV heads"),
        ({"hidden_size": 500}, "not a multiple of 8 heads"),
        ({"head_dim": -64}, "head_dim"),
        ({"head_dim": "64"}, "head_dim"),
        ({"layer_types": ["full_attention"] * 11}, "must list all 12 layers, but has 11"),
        ({"layer_types": "full_attention"}, "must list all 12 layers, but has str"),
        ({"layer_types": ["full_attention", 7] * 6}, r"type \['7'\]"),
        ({"layer_types": ["sliding_attention"] * 12}, "no sliding_window"),
        ({"sliding_window": 0}, "sliding_window .* at least 1"),
        ({"sliding_window": "4096"}, "sliding_window"),
        ({"use_sliding_window": True, "sliding_window": 64, "max_window_layers": -1}, "max_window_layers"),
        ({"full_attention_interval": 0}, "full_attention_interval"),
        ({"kv_lora_rank": 512}, "no qk_rope_head_dim"),
        ({"max_position_embeddings": "8k"}, "max_position_embeddings"),
        ({"is_encoder_decoder": True}, "encoder-decoder"),
        ({"linear_attn_config": {}}, "not supported"),
        ({"text_config": {"num_hidden_layers": []}}, "list"),
    ],
)
def test_odd_content_is_refused_by_name(more, says):
    with pytest.raises(ConfigError, match=says):
        ModelShape.from_config({**BASE, **more})


def test_a_file_or_a_folder(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(BASE))
    assert (
        ModelShape.from_config(file) == ModelShape.from_config(tmp_path) == ModelShape.from_config(str(file))
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "is not JSON"),
        (b"[]", "holds a list"),
        (b"\xff\xfe\x00", "cannot be read"),
        (b"[" * 100_000, "is not JSON"),
        (b"{}", "config.json has no num_hidden_layers"),
    ],
)
def test_broken_files(tmp_path, content, says):
    file = tmp_path / "config.json"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=says):
        ModelShape.from_config(file)
    with pytest.raises(ConfigError, match="There is no file"):
        ModelShape.from_config(tmp_path / "other.json")


VALUES = st.none() | st.booleans() | st.integers(-2, 40) | st.floats() | st.text(max_size=4)
KEYS = [
    *BASE,
    "head_dim",
    "sliding_window",
    "layer_types",
    "kv_lora_rank",
    "qk_rope_head_dim",
    "attention_chunk_size",
    "full_attention_interval",
    "linear_num_value_heads",
    "mamba_n_heads",
    "text_config",
    "max_window_layers",
    "use_sliding_window",
]


@given(st.dictionaries(st.sampled_from(KEYS), VALUES | st.lists(VALUES, max_size=3), max_size=6))
def test_any_content_is_a_shape_or_a_sentence(changes):
    try:
        shape = ModelShape.from_config({**BASE, **changes})
    except ConfigError as error:
        assert str(error)
    else:
        assert shape.num_layers == len(shape.layers) >= 1
        assert shape.kv_bytes_per_token("float16") >= 0
