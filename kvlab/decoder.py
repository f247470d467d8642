"""A Llama-family decoder that reads top to bottom and keeps its K and V wherever the sequences say.

Architecture: RMSNorm before each half of a layer, rotary positions, grouped-query attention, SwiGLU, and the
embedding matrix used again for the logits (Llama 2, https://arxiv.org/abs/2307.09288; SmolLM2 has this form).
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from kvlab.checkpoint import GGUF
from kvlab.tokenizer import Tokenizer
from kvlab.weights import DecoderConfig, Weights

__all__ = ["Decoder", "DecoderConfig"]


class Decoder:
    """The model: weights and one method, `step`. It remembers nothing between steps; the sequences do.

    Build it with `from_gguf`, or with `random` for a small one that needs no download.
    """

    def __init__(self, weights: Weights, gguf: GGUF | None = None):
        self.config = weights.config
        self.weights = weights
        self._gguf = gguf
        halves = torch.arange(0, self.config.head_dim, 2) / self.config.head_dim  # [D / 2]
        self._frequencies = self.config.rope_base**-halves  # radians a position, [D / 2]

    @classmethod
    def from_gguf(
        cls,
        model: str | os.PathLike | GGUF,
        dtype: torch.dtype = torch.float32,
        undo_permutation: bool = True,
    ) -> Decoder:
        """Load the model from a GGUF file, dequantised to `dtype`.

        `undo_permutation=False` plants a bug: Q and K rows keep an order that the rotation does not expect.
        Raises ModelNotFound or GGUFError.
        """
        gguf = model if isinstance(model, GGUF) else GGUF.open(model)
        return cls(Weights.from_gguf(gguf, dtype=dtype, undo_permutation=undo_permutation), gguf)

    @classmethod
    def random(cls, config: DecoderConfig, *, seed: int = 0, dtype: torch.dtype = torch.float32) -> Decoder:
        """A model of this shape with random weights."""
        return cls(Weights.random(config, seed=seed, dtype=dtype))

    @property
    def dtype(self) -> torch.dtype:
        return self.weights.embedding.dtype

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer of the same file; None for a random model."""
        return None if self._gguf is None else Tokenizer.from_gguf(self._gguf)

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """The tokens that end an answer, by the same file; none for a random model."""
        return () if self._gguf is None else (self._gguf.value("tokenizer.ggml.eos_token_id"),)

    @torch.no_grad()
    def step(self, sequences, tokens: Mapping[Hashable, Sequence[int]]) -> dict[Hashable, Tensor]:
        """Feed every request its next tokens and return the logits after the last of each.

        Args:
            sequences: ContiguousSequences or PagedSequences; knows what each request has seen so far.
            tokens: request id -> token ids. A new request brings its prompt, a running one usually one token.

        Returns:
            request id -> float32 logits [vocab].

        Raises:
            ValueError: no request, a request without tokens, a token outside the vocabulary, or a context
                longer than the model's.
            OutOfBlocks: from the block manager; with one that can reserve, nothing has changed.
        """
        if not tokens:
            raise ValueError("A step needs at least one request with its tokens.")
        for request_id, ids in tokens.items():
            self.check_tokens(request_id, ids, held=sequences.length(request_id))
        with sequences.step(tokens) as batch:
            last = torch.tensor(batch.counts).cumsum(0) - 1  # [S], row of each request's last token
            ids = torch.tensor(batch.token_ids)  # [T], T = all tokens to compute
            cos, sin = self._rotation(batch.positions)  # each [T, 1, D / 2]
            x = self.weights.embedding[ids]  # [T, hidden]
            for number, layer in enumerate(self.weights.layers):
                h = self._norm(x, layer.attn_norm)  # [T, hidden]
                q = rotate(self._heads(h, layer.attn_q), cos, sin)  # [T, Hq, D]
                k = rotate(self._heads(h, layer.attn_k), cos, sin)  # [T, Hkv, D]
                v = self._heads(h, layer.attn_v)  # [T, Hkv, D]
                batch.write(number, k, v)
                a = batch.attend(number, q)  # [T, Hq, D]
                x = x + F.linear(a.flatten(1), layer.attn_output)  # [T, hidden]
                h = self._norm(x, layer.ffn_norm)  # [T, hidden]
                h = F.silu(F.linear(h, layer.ffn_gate)) * F.linear(h, layer.ffn_up)  # [T, intermediate]
                x = x + F.linear(h, layer.ffn_down)  # [T, hidden]
            x = self._norm(x[last], self.weights.output_norm)  # [S, hidden]
            logits = F.linear(x, self.weights.embedding).float()  # [S, vocab]
        return dict(zip(tokens, logits, strict=True))

    def _norm(self, x: Tensor, gain: Tensor) -> Tensor:
        return F.rms_norm(x, gain.shape, gain, self.config.rms_epsilon)  # [..., hidden]

    def _heads(self, h: Tensor, weight: Tensor) -> Tensor:
        return F.linear(h, weight).unflatten(-1, (-1, self.config.head_dim))  # [T, heads, D]

    def _rotation(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        angles = positions.to(torch.float32)[:, None] * self._frequencies  # [T, D / 2]
        return angles.cos().to(self.dtype)[:, None], angles.sin().to(self.dtype)[:, None]  # [T, 1, D / 2]

    def check_tokens(self, request_id: Hashable, ids: Sequence[int], held: int = 0) -> None:
        """Whether a request that holds `held` tokens can take these. Raises ValueError if not."""
        if len(ids) == 0:
            raise ValueError(
                f"Request {request_id!r} brings no tokens: give it at least one, or leave it out."
            )
        for token in ids:
            if not 0 <= token < self.config.vocab_size:
                raise ValueError(
                    f"Request {request_id!r}: token id {token} is outside the vocabulary, "
                    f"0 to {self.config.vocab_size - 1}."
                )
        if held + len(ids) > self.config.context_length:
            raise ValueError(
                f"Request {request_id!r} would hold {held + len(ids)} tokens; the model's context is "
                f"{self.config.context_length}: shorten the prompt or generate less."
            )


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding (https://arxiv.org/abs/2104.09864): turn each pair (i, i + D / 2) of a head.

    x [T, heads, D]; cos and sin [T, 1, D / 2] of position * frequency.
    """
    a, b = x.chunk(2, dim=-1)  # each [T, heads, D / 2]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)  # [T, heads, D]
