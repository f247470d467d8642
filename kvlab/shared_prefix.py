"""Prefill with a prefix cache: the tokens that a prompt shares with earlier ones are not computed again."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from time import perf_counter
from typing import NamedTuple

from torch import Tensor

from kvlab.decoder import Decoder
from kvlab.sequences import PagedSequences


class Prefill(NamedTuple):
    """One prompt's first step.

    num_tokens: in the prompt. num_cached: of those, found in the cache. seconds: from the prompt's arrival to
    the logits of its first token. logits: float32 [vocab].
    """

    request_id: Hashable
    num_tokens: int
    num_cached: int
    seconds: float
    logits: Tensor

    @property
    def num_computed(self) -> int:
        """Tokens that went through the model."""
        return self.num_tokens - self.num_cached


def prefill_in_turn(
    decoder: Decoder, sequences: PagedSequences, prompts: Mapping[Hashable, Sequence[int]]
) -> list[Prefill]:
    """Feed the prompts one after another, as they would arrive, and say what each cost.

    With a manager that caches prefixes, whole blocks of a prompt that an earlier one filled are skipped.

    The logits are those without a cache, but not to the last bit: a matrix product over 12 rows adds its
    terms in another order than one over 212 rows, and float32 addition depends on the order. Expect
    differences about as large as between any two orders of the sum: 1e-4 for SmolLM2, under 1e-3 always.

    The requests stay; release them when you have looked at them.
    """
    prefills = []
    for request_id, ids in prompts.items():
        before = sequences.num_computed
        start = perf_counter()
        logits = decoder.step(sequences, {request_id: ids})[request_id]
        seconds = perf_counter() - start
        num_cached = len(ids) - (sequences.num_computed - before)
        prefills.append(Prefill(request_id, len(ids), num_cached, seconds, logits))
    return prefills
