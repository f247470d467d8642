"""The sizes and the weights of a Llama-family model, loaded from GGUF or drawn at random."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from kvlab.checkpoint import GGUF, GGUFError


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes of the model. Query head h reads KV head h // (num_heads // num_kv_heads)."""

    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    context_length: int
    rms_epsilon: float = 1e-5
    rope_base: float = 10_000.0

    def __post_init__(self):
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"{self.num_heads} query heads do not divide over {self.num_kv_heads} KV heads.")
        if self.head_dim % 2:
            raise ValueError(f"head_dim is {self.head_dim}: rotary positions turn pairs, so it must be even.")

    @classmethod
    def from_gguf(cls, gguf: GGUF) -> DecoderConfig:
        """Raises GGUFError when a key is missing or the file holds another kind of model."""
        architecture = gguf.value("general.architecture")
        if architecture != "llama":
            raise GGUFError(f"{gguf.path.name}: the model is {architecture!r}; only 'llama' is known.")
        hidden_size, num_heads = (
            gguf.value("llama.embedding_length"),
            gguf.value("llama.attention.head_count"),
        )
        return cls(
            num_layers=gguf.value("llama.block_count"),
            hidden_size=hidden_size,
            intermediate_size=gguf.value("llama.feed_forward_length"),
            num_heads=num_heads,
            num_kv_heads=gguf.value("llama.attention.head_count_kv"),
            head_dim=hidden_size // num_heads,
            vocab_size=gguf.tensor_info("token_embd.weight").shape[0],
            context_length=gguf.value("llama.context_length"),
            rms_epsilon=gguf.value("llama.attention.layer_norm_rms_epsilon"),
            rope_base=gguf.value("llama.rope.freq_base"),
        )


@dataclass(frozen=True)
class LayerWeights:
    """One layer's matrices [out features, in features] and norm gains [hidden size], named as in the GGUF."""

    attn_norm: Tensor  # [hidden]
    attn_q: Tensor  # [Hq * D, hidden]
    attn_k: Tensor  # [Hkv * D, hidden]
    attn_v: Tensor  # [Hkv * D, hidden]
    attn_output: Tensor  # [hidden, Hq * D]
    ffn_norm: Tensor  # [hidden]
    ffn_gate: Tensor  # [intermediate, hidden]
    ffn_up: Tensor  # [intermediate, hidden]
    ffn_down: Tensor  # [hidden, intermediate]


@dataclass(frozen=True)
class Weights:
    """All weights of a model. The embedding is also the output matrix."""

    config: DecoderConfig
    embedding: Tensor  # [vocab, hidden]
    layers: list[LayerWeights]
    output_norm: Tensor  # [hidden]

    @classmethod
    def from_gguf(
        cls, gguf: GGUF, *, dtype: torch.dtype = torch.float32, undo_permutation: bool = True
    ) -> Weights:
        """Load and dequantise. Raises GGUFError for a file that does not hold such a model.

        GGUF stores the rows of Q and K in the order that interleaved rotation wants; the decoder rotates
        halves, so the order is undone here. `undo_permutation=False` leaves it: a bug to look at.
        """
        config = DecoderConfig.from_gguf(gguf)
        if "output.weight" in gguf.tensors:
            raise GGUFError(
                f"{gguf.path.name}: it has its own output matrix; only tied embeddings are known."
            )

        def weight(layer: int, name: str) -> Tensor:
            tensor = gguf.load(f"blk.{layer}.{name}.weight").to(dtype)
            if undo_permutation and name in ("attn_q", "attn_k"):
                tensor = unpermute(tensor, config.head_dim)
            return tensor

        names = [field.name for field in fields(LayerWeights)]
        return cls(
            config=config,
            embedding=gguf.load("token_embd.weight").to(dtype),
            layers=[LayerWeights(**{n: weight(i, n) for n in names}) for i in range(config.num_layers)],
            output_norm=gguf.load("output_norm.weight").to(dtype),
        )

    @classmethod
    def random(cls, config: DecoderConfig, *, seed: int = 0, dtype: torch.dtype = torch.float32) -> Weights:
        """Random weights of this shape: the model says nothing sensible, but needs no file."""
        generator = torch.Generator().manual_seed(seed)

        def matrix(rows: int, columns: int) -> Tensor:
            return (torch.randn(rows, columns, generator=generator) / columns**0.5).to(dtype)

        def gain() -> Tensor:
            return (1 + 0.1 * torch.randn(config.hidden_size, generator=generator)).to(dtype)

        hidden, inner = config.hidden_size, config.intermediate_size
        q_rows, kv_rows = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
        layers = [
            LayerWeights(
                attn_norm=gain(),
                attn_q=matrix(q_rows, hidden),
                attn_k=matrix(kv_rows, hidden),
                attn_v=matrix(kv_rows, hidden),
                attn_output=matrix(hidden, q_rows),
                ffn_norm=gain(),
                ffn_gate=matrix(inner, hidden),
                ffn_up=matrix(inner, hidden),
                ffn_down=matrix(hidden, inner),
            )
            for _ in range(config.num_layers)
        ]
        return cls(config, matrix(config.vocab_size, hidden), layers, gain())


def unpermute(weight: Tensor, head_dim: int) -> Tensor:
    """Rows of Q or K, in each head: from pairs (0, 1), (2, 3), ... back to halves (0, D / 2), ..."""
    pairs = weight.view(-1, head_dim // 2, 2, weight.shape[-1])  # [heads, D / 2, 2, in]
    return pairs.transpose(1, 2).reshape(weight.shape)  # [heads * D, in]
