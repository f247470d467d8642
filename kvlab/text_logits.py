"""The logits of every position of a text in one forward pass, with any K and V cache in between.

`Decoder.step` gives the logits after the last new token of each request. Here every position of one text is
a request of its own, and all see the text up to themselves, so one step gives all logits (teacher forcing).
Each position attends to K and V as the cache gives them back, its own included: the same numbers that a
decode loop over that cache would compute.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from kvlab.decoder import Decoder
from kvlab.prefill import causal_attention

Stored = Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]]
"""(layer, k, v), each [T, Hkv, D] -> the same after having been in the cache."""


def text_logits(decoder: Decoder, ids: Sequence[int], stored: Stored | None = None) -> Tensor:
    """Logits after each token of the text: float32 [T, vocab].

    Args:
        stored: what the cache makes of a layer's K and V; None keeps them exact.
    """
    text = _Text(len(ids), stored or (lambda layer, k, v: (k, v)))
    logits = decoder.step(text, {position: [token] for position, token in enumerate(ids)})
    return torch.stack([logits[position] for position in range(len(ids))])  # [T, vocab]


class _Text:
    """What the decoder needs of sequences: position p is a request that holds the p tokens before it."""

    def __init__(self, length: int, stored: Stored):
        self._length, self._stored = length, stored

    def length(self, request_id: Hashable) -> int:
        return request_id

    @contextmanager
    def step(self, tokens: Mapping[Hashable, Sequence[int]]) -> Iterator[_TextBatch]:
        yield _TextBatch([ids[0] for ids in tokens.values()], self._stored)


class _TextBatch:
    def __init__(self, token_ids: list[int], stored: Stored):
        self.token_ids, self._stored = token_ids, stored
        self.counts = [1] * len(token_ids)
        self.positions = torch.arange(len(token_ids))  # [T]

    def write(self, layer: int, k: Tensor, v: Tensor) -> None:
        self._k, self._v = self._stored(layer, k, v)  # each [T, Hkv, D]

    def attend(self, layer: int, q: Tensor) -> Tensor:
        return causal_attention(q, self._k, self._v)  # [T, Hq, D]
