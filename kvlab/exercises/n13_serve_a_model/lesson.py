"""The model of notebook 13, or a stand-in that needs no download, so that every cell runs either way."""

from __future__ import annotations

import re
from functools import cached_property

from kvlab.checkpoint import require_model
from kvlab.decoder import Decoder, DecoderConfig
from kvlab.exercises.telling import say
from kvlab.tokenizer import TextStream
from kvlab.weights import Weights

_SIZES = DecoderConfig(
    num_layers=2,
    hidden_size=96,
    intermediate_size=192,
    num_heads=3,
    num_kv_heads=1,
    head_dim=32,
    vocab_size=512,
    context_length=512,
)
_TEMPLATE_TOKENS = 30  # what SmolLM2's chat template adds around a question
_FIRST_QUESTION = "What is the capital of France? Tell me one fact about it."


def load_model(*, undo_permutation: bool = True) -> Decoder:
    """SmolLM2-135M in float32, in one thread; without its file a small random model, with a sentence."""
    import torch

    torch.set_num_threads(1)
    try:
        decoder = Decoder.from_gguf(require_model(), undo_permutation=undo_permutation)
        _ = decoder.tokenizer
    except (OSError, ValueError, ImportError) as problem:
        say(
            f"{problem} Until then a small random model stands in: it talks nonsense, "
            "and everything about its blocks is true."
        )
        return StandIn(undo_permutation)
    return decoder


class StandIn(Decoder):
    """A random model with a tokenizer of words; its first request stops early, as SmolLM2's does."""

    def __init__(self, undo_permutation: bool = True):
        super().__init__(Weights.random(_SIZES, seed=0 if undo_permutation else 1))

    @cached_property
    def tokenizer(self) -> StandInTokenizer:
        return StandInTokenizer(self.config.vocab_size)

    @cached_property
    def stop_ids(self) -> tuple[int, ...]:
        """The token that the model says last in eight steps on the first question."""
        from kvlab.sequences import ContiguousSequences

        sequences = ContiguousSequences(self.config)
        feed = self.tokenizer.chat(_FIRST_QUESTION)
        for _ in range(8):
            feed = [int(self.step(sequences, {"A": feed})["A"].argmax())]
        return tuple(feed)


class StandInTokenizer:
    """One token a word or punctuation mark, after as many tokens as SmolLM2's template has."""

    control_ids = frozenset()

    def __init__(self, vocab_size: int):
        self.vocab_size = vocab_size

    def chat(self, question: str) -> list[int]:
        return [*range(1, _TEMPLATE_TOKENS + 1), *self.encode(question)]

    def encode(self, text: str) -> list[int]:
        words = re.findall(r"\w+|[^\w\s]", text)
        return [sum(word.encode()) * 31 % self.vocab_size for word in words]

    def token_bytes(self, token_id: int) -> bytes:
        return f" w{token_id}".encode()

    def decode(self, token_ids) -> str:
        return b"".join(map(self.token_bytes, token_ids)).decode()

    def stream(self) -> TextStream:
        return TextStream(self)
