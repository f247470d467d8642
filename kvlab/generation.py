"""Generating text for several requests at once, one token a request a step, as a stream."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

import torch
from torch import Tensor

from kvlab.decoder import Decoder
from kvlab.tokenizer import TextStream


class StreamedToken(NamedTuple):
    """One token of one request.

    step: the step that made it, from 0. text: what it adds to the readable text; may be empty, as half a
    character is held back until it is complete. logits: float32 [vocab] that it was chosen from.
    finished: None, "stop" (a stop token, which has no text) or "length" (max_new_tokens reached).
    """

    step: int
    request_id: Hashable
    token_id: int
    text: str
    logits: Tensor
    finished: str | None = None


@dataclass
class Sampler:
    """Chooses a token from logits. Temperature 0 is greedy; else softmax(logits / temperature), cut by top_p.

    `seed` and `stream` decide every draw, so a request draws the same numbers whoever else is in the batch.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stream: int = 0

    def __post_init__(self):
        if not (isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(
                f"temperature is {self.temperature}: it must be 0 (greedy) or a positive number."
            )
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p}: it must be over 0 and at most 1.")
        # two requests of one seed, and one request under two seeds, draw from different streams
        self._generator = torch.Generator().manual_seed((self.seed * 1_000_003 + self.stream) % 2**63)

    def choose(self, logits: Tensor) -> int:
        """logits [vocab] -> token id."""
        if self.temperature == 0:
            return int(logits.argmax())
        probabilities = (logits / self.temperature).softmax(-1)  # [vocab]
        if self.top_p < 1:
            ranked, order = probabilities.sort(descending=True, stable=True)  # [vocab]
            # nucleus sampling, https://arxiv.org/abs/1904.09751: keep a token if those before it miss top_p
            ranked[ranked.cumsum(-1) - ranked >= self.top_p] = 0
            return int(order[torch.multinomial(ranked, 1, generator=self._generator)])
        return int(torch.multinomial(probabilities, 1, generator=self._generator))


@dataclass
class _Running:
    """A request between two steps: the tokens to feed next, and how many it has made.

    prompt_group: what requests that were added with one prompt have in common, until it has been fed.
    """

    next_ids: list[int]
    sampler: Sampler
    text: TextStream | None
    prompt_group: object
    made: int = 0


class Generator:
    """Several requests decoded together; requests may be added at any time and leave when they are finished.

    Iterate over it, or call `step()` yourself and `add()` in between. An exception (OutOfBlocks, say) leaves
    all requests as they were before the step: remove one and go on.

    Args:
        sequences: ContiguousSequences or PagedSequences.
        max_new_tokens: at most so many tokens a request.
        temperature, top_p, seed: see Sampler.
        stop_ids: tokens that end a request; None means the model's own end token.
        release_finished: whether a finished request is released, so that its blocks are free again from the
            end of its last step on. If not, they stay to be looked at, and releasing them is up to you.

    Raises:
        ValueError: an argument out of range.
    """

    def __init__(
        self,
        decoder: Decoder,
        sequences,
        *,
        max_new_tokens: int,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int = 0,
        stop_ids: Iterable[int] | None = None,
        release_finished: bool = True,
    ):
        if not isinstance(max_new_tokens, int) or max_new_tokens < 1:
            raise ValueError(f"max_new_tokens is {max_new_tokens!r}: it must be a whole number, at least 1.")
        self.decoder, self.sequences, self.max_new_tokens = decoder, sequences, max_new_tokens
        self.stop_ids = frozenset(decoder.stop_ids if stop_ids is None else stop_ids)
        Sampler(temperature, top_p, seed)
        self.release_finished = release_finished
        self._sampling = (temperature, top_p, seed)
        self._running: dict[Hashable, _Running] = {}
        self._added = 0
        self._steps = 0

    @property
    def request_ids(self) -> list[Hashable]:
        """The requests that are not finished, oldest first."""
        return list(self._running)

    def add(self, request_id: Hashable, prompt_ids: Sequence[int]) -> None:
        """Let a request join at the next step.

        Raises:
            ValueError: an id that is in use, an empty prompt, a token outside the vocabulary, or a prompt
                that leaves no room for max_new_tokens in the model's context.
        """
        self.add_samples([request_id], prompt_ids)

    def add_samples(self, request_ids: Sequence[Hashable], prompt_ids: Sequence[int]) -> None:
        """Let several requests with one prompt join: it is computed once, for the first, and forked.

        Each draws from a stream of its own, the same as if the requests were added one by one.

        Raises:
            ValueError: as for `add`, or an id named twice. TypeError: the manager cannot fork.
        """
        request_ids, prompt_ids = list(request_ids), list(prompt_ids)
        taken = [*self._running, *self.sequences.request_ids()]
        for number, request_id in enumerate(request_ids):
            if request_id in taken or request_id in request_ids[:number]:
                raise ValueError(f"Request {request_id!r} is there already: release it or choose another id.")
            self.decoder.check_tokens(request_id, prompt_ids, held=self.max_new_tokens)
        if len(request_ids) > 1:
            self.sequences.require_fork()
        tokenizer, group = self.decoder.tokenizer, object()
        for request_id in request_ids:
            sampler = Sampler(*self._sampling, stream=self._added)
            self._running[request_id] = _Running(prompt_ids, sampler, tokenizer and tokenizer.stream(), group)
            self._added += 1

    def remove(self, request_id: Hashable) -> None:
        """Stop a request before its end and release it. KeyError if it is not running."""
        if request_id not in self._running:
            raise KeyError(f"request {request_id!r} is not running: {self.request_ids} are")
        del self._running[request_id]
        if request_id in self.sequences.request_ids():
            self.sequences.release(request_id)

    def step(self) -> list[StreamedToken]:
        """One token for every running request; none when all are finished."""
        if not self._running:
            return []
        parents = self._parents()
        feed = {r: running.next_ids for r, running in self._running.items() if r not in parents}
        logits = self.decoder.step(self.sequences, feed)
        for request_id, parent_id in parents.items():
            self.sequences.fork(parent_id, request_id)
            logits[request_id] = logits[parent_id]
        tokens = [self._advance(request_id, logits[request_id]) for request_id in self._running]
        self._steps += 1
        for token in tokens:
            if token.finished and self.release_finished:
                self.remove(token.request_id)
            elif token.finished:
                del self._running[token.request_id]
        return tokens

    def __iter__(self) -> Iterator[StreamedToken]:
        while self._running:
            yield from self.step()

    def _parents(self) -> dict[Hashable, Hashable]:
        """For each request whose prompt another one feeds in this step, that other one."""
        first_of: dict[object, Hashable] = {}
        parents = {}
        for request_id, running in self._running.items():
            if running.made == 0:
                first = first_of.setdefault(running.prompt_group, request_id)
                if first != request_id:
                    parents[request_id] = first
        return parents

    def _advance(self, request_id: Hashable, logits: Tensor) -> StreamedToken:
        running = self._running[request_id]
        token_id = running.sampler.choose(logits)
        running.next_ids = [token_id]
        running.made += 1
        finished = None
        if token_id in self.stop_ids:
            finished = "stop"
        elif running.made == self.max_new_tokens:
            finished = "length"
        text = ""
        if running.text is not None:
            text = "" if finished == "stop" else running.text.push(token_id)
            text += running.text.finish() if finished else ""
        return StreamedToken(self._steps, request_id, token_id, text, logits, finished)


def generate(
    decoder: Decoder,
    sequences,
    prompts: Mapping[Hashable, Sequence[int]],
    *,
    max_new_tokens: int,
    temperature: float = 0.0,
    top_p: float = 1.0,
    seed: int = 0,
    stop_ids: Iterable[int] | None = None,
    release_finished: bool = True,
) -> Iterator[StreamedToken]:
    """Decode all prompts together and stream their tokens, in the order of the prompts within each step.

    The arguments are Generator's, and are checked at once, before the first token is asked for.
    """
    if not prompts:
        raise ValueError(
            "There is nothing to generate: give at least one prompt, as {request_id: token ids}."
        )
    generator = Generator(
        decoder,
        sequences,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_p=top_p,
        seed=seed,
        stop_ids=stop_ids,
        release_finished=release_finished,
    )
    for request_id, prompt_ids in prompts.items():
        generator.add(request_id, prompt_ids)
    return iter(generator)
