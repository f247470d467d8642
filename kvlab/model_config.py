"""Reading the shape of a model out of its Hugging Face config.json: layers, heads, head size, windows."""

import json
from pathlib import Path

from kvlab.layer_kinds import Layer

_NAMES = {
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "num_key_value_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads"),
    "hidden_size": ("hidden_size", "n_embd", "d_model", "dim"),
    "dtype": ("dtype", "torch_dtype"),
    "max_position_embeddings": ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"),
}
_NESTED = ("thinker_config", "llm_config", "language_config", "text_config")  # outer ones first
_KIND_OF_NAME = {
    "full_attention": "full",
    "attention": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "linear",
    "mamba": "linear",
}


class ConfigError(ValueError):
    """A model configuration that cannot be read, with the reason."""


class Config:
    """A config.json's content with checked reads. Every complaint names the key and the file."""

    def __init__(self, source):
        self.where = "the configuration"
        if isinstance(source, dict):
            self.values = source
        else:
            self.values = self._load(Path(source))
        for name in _NESTED:
            while isinstance(self.values.get(name), dict):
                inner = {k: v for k, v in self.values[name].items() if v is not None}
                self.values = {**{k: v for k, v in self.values.items() if k != name}, **inner}
        if self.get("is_encoder_decoder"):
            raise ConfigError(f"{self.where} is an encoder-decoder model; only decoders are sized here.")

    def _load(self, path: Path) -> dict:
        path = path / "config.json" if path.is_dir() else path
        self.where = path.name
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ConfigError(f"There is no file {path}. Give a model's config.json or its folder.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} cannot be read: {error}.") from None
        except (json.JSONDecodeError, RecursionError) as error:
            raise ConfigError(f"{path} is not JSON: {error}.") from None
        if not isinstance(values, dict):
            raise ConfigError(
                f"{path} holds a {type(values).__name__}, but a config.json is an object {{...}}."
            )
        return values

    def get(self, name: str):
        """The value under any of the names that models use for it, or None."""
        for key in _NAMES.get(name, (name,)):
            if self.values.get(key) is not None:
                return self.values[key]
        return None

    def count(self, name: str, default: int | None = None) -> int:
        """A whole number of at least 1. Without a default the key must be there."""
        value = self.get(name)
        if value is None:
            if default is None:
                names = " or ".join(_NAMES.get(name, (name,)))
                raise ConfigError(f"{self.where} has no {names}, which is needed to size the KV cache.")
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(
                f"{name} in {self.where} must be a whole number of at least 1, but is {str(value)[:40]!r} "
                f"({type(value).__name__})."
            )
        return value

    def names(self, name: str, length: int) -> list | None:
        """A list with one entry per layer, or None when the key is absent."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != length:
            size = len(value) if isinstance(value, list) else type(value).__name__
            raise ConfigError(f"{name} in {self.where} must list all {length} layers, but has {size}.")
        return value


def read_layers(config: Config) -> tuple[Layer, ...]:
    """One Layer per layer of the model, in order."""
    if config.get("linear_attn_config") is not None:
        raise ConfigError(f"{config.where} mixes layers by linear_attn_config, which is not supported here.")
    kinds = _kinds(config, config.count("num_hidden_layers"))
    made = {kind: _layer(config, kind) for kind in sorted(set(kinds))}
    return tuple(made[kind] for kind in kinds)


def _kinds(config: Config, layers: int) -> list[str]:
    """The kind of each layer: from an explicit list, or else from the rule of the model's family."""
    named = config.names("layer_types", layers) or config.names("layers_block_type", layers)
    if named:
        unknown = sorted({str(name)[:40] for name in named} - set(_KIND_OF_NAME))
        if unknown:
            raise ConfigError(
                f"{config.where} has layers of type {unknown}; known are {sorted(_KIND_OF_NAME)}."
            )
        return [_KIND_OF_NAME[name] for name in named]
    for key, other in (("full_attention_interval", "linear"), ("sliding_window_pattern", "sliding")):
        if config.get(key) is not None:
            every = config.count(key)
            return ["full" if (i + 1) % every == 0 else other for i in range(layers)]
    if config.get("attention_chunk_size") is not None:
        every = config.count("no_rope_layer_interval", 4)
        rope = config.names("no_rope_layers", layers) if config.get("no_rope_layers") else None
        return ["chunked" if (rope[i] if rope else (i + 1) % every) else "full" for i in range(layers)]
    return _sliding_kinds(config, layers)


def _sliding_kinds(config: Config, layers: int) -> list[str]:
    """Families that name a window only: some switch it off, some use it in a part of the layers."""
    if config.get("sliding_window") is None or config.get("use_sliding_window") is False:
        return ["full"] * layers
    family = str(config.get("model_type"))
    every = 6 if family.startswith("gemma3") else 2 if family in ("gemma2", "gpt_oss") else None
    if every:
        return ["full" if (i + 1) % every == 0 else "sliding" for i in range(layers)]
    if config.get("use_sliding_window") and config.get("max_window_layers") is not None:
        first = config.values["max_window_layers"]
        if isinstance(first, bool) or not isinstance(first, int) or first < 0:
            raise ConfigError(
                f"max_window_layers in {config.where} must be a whole number, but is {first!r}."
            )
        return ["sliding" if i >= first else "full" for i in range(layers)]
    return ["sliding"] * layers


def _layer(config: Config, kind: str) -> Layer:
    if kind == "linear":
        return Layer("linear", state=_linear_state(config))
    window = {"sliding": "sliding_window", "chunked": "attention_chunk_size"}.get(kind)
    tokens = config.count(window) if window else None
    if config.get("kv_lora_rank") is not None:
        latent = config.count("kv_lora_rank") + config.count("qk_rope_head_dim")
        return Layer(kind, 1, latent, 0, tokens)
    heads, size = read_heads(config)[1:]
    return Layer(kind, heads, size, size, tokens)


def read_heads(config: Config) -> tuple[int, int, int]:
    """(query heads, KV heads, head size). KV heads default to the query heads; the size to hidden / heads."""
    query_heads = config.count("num_attention_heads")
    one_kv_head = config.get("multi_query") is True and not config.get("new_decoder_architecture")
    kv_heads = 1 if one_kv_head else config.count("num_key_value_heads", query_heads)
    if query_heads % kv_heads:
        raise ConfigError(
            f"{query_heads} query heads cannot share {kv_heads} KV heads evenly: check "
            f"num_attention_heads and num_key_value_heads in {config.where}."
        )
    if config.get("head_dim") is not None:
        return query_heads, kv_heads, config.count("head_dim")
    hidden = config.count("hidden_size")
    if hidden % query_heads:
        raise ConfigError(
            f"{config.where} has no head_dim, and hidden_size {hidden} is not a multiple of "
            f"{query_heads} heads."
        )
    return query_heads, kv_heads, hidden // query_heads


def _linear_state(config: Config) -> tuple[tuple[int, str | None], ...] | None:
    """Numbers in a linear layer's state: the convolution's last inputs and the recurrent matrix.

    Gated delta net (Qwen3-Next, Qwen3.5): (kernel - 1) * (2 * key heads * key size + value heads * value
    size), and value heads * value size * key size in `mamba_ssm_dtype`. Mamba-2: (conv - 1) * (heads * head
    size + 2 * groups * state size), and heads * head size * state size.
    Source: vLLM, MambaStateShapeCalculator.
    """
    dtype = config.get("mamba_ssm_dtype") and str(config.get("mamba_ssm_dtype"))
    if config.get("linear_num_value_heads") is not None:
        keys = config.count("linear_num_key_heads") * config.count("linear_key_head_dim")
        values = config.count("linear_num_value_heads") * config.count("linear_value_head_dim")
        conv = (config.count("linear_conv_kernel_dim") - 1) * (2 * keys + values)
        return (conv, None), (values * config.count("linear_key_head_dim"), dtype)
    if config.get("mamba_n_heads") is not None and isinstance(config.get("mamba_d_head"), int):
        inner = config.count("mamba_n_heads") * config.count("mamba_d_head")
        size = config.count("mamba_d_state")
        conv = (config.count("mamba_d_conv") - 1) * (inner + 2 * config.count("mamba_n_groups") * size)
        return (conv, None), (inner * size, dtype)
    return None
