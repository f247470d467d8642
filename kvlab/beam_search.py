"""Beam search on real caches: beams fork, die and copy as their scores say, and each step is recorded.

A beam is a request. Over `PagedSequences` a fork shares the parent's blocks and a dead beam's blocks are free
at once; over `ContiguousSequences` a fork copies the parent's whole cache. The tokens are the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import count
from math import isfinite
from typing import NamedTuple

import torch
from torch import Tensor

from kvlab.beam_tables import carry_out, plan_moves
from kvlab.block_table import BlockCopy
from kvlab.decoder import Decoder


class Beam(NamedTuple):
    """One live continuation. tokens: what it has generated. log_probability: the sum over its tokens.
    parent: the request that it continues, itself unless it was forked in this step."""

    request_id: Hashable
    tokens: tuple[int, ...]
    log_probability: float
    parent: Hashable


class Hypothesis(NamedTuple):
    """One finished continuation. score: log_probability / len(tokens) ** length_penalty.
    finished: "stop" (the last token is a stop token) or "length" (max_new_tokens reached)."""

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    finished: str
    parent: Hashable


class BeamStep(NamedTuple):
    """One step, for the picture of the tree.

    copies: block copies made when the beams' last tokens were fed (paged only). released: beams that died, as
    request ids. forked: (parent, child). beams: those that live on, best first. ended: hypotheses that this
    step added and kept. bytes_held: bytes of K and V after the dead were released.
    """

    step: int
    copies: list[BlockCopy]
    released: list[Hashable]
    forked: list[tuple[Hashable, Hashable]]
    beams: list[Beam]
    ended: list[Hypothesis]
    bytes_held: int


class BeamSearch:
    """The `beam_width` likeliest continuations of one prompt, token by token.

    A step feeds every beam its last token and ranks all continuations by log probability. Of the best
    `beam_width`, those that end in a stop token become hypotheses; the best `beam_width` others live on. The
    search is over when no live beam can still beat the worst of `beam_width` hypotheses, or at
    max_new_tokens. (Sequences are ranked as in Wu et al., https://arxiv.org/abs/1609.08144, with the length
    itself in place of (5 + length) / 6; this is also what transformers does with early_stopping="never".)

    An exception from a step (OutOfBlocks, say) leaves the search as it was: make room and call `step` again.

    Args:
        sequences: PagedSequences over a manager that can fork, or ContiguousSequences.
        length_penalty: 0 ranks hypotheses by probability; more than 0 favours long ones, less short ones.
        stop_ids: tokens that end a beam; None means the model's own end token.
        early_stopping: be over as soon as there are `beam_width` hypotheses.
        request_id: the first beam's request; forked ones are "request_id.1", "request_id.2", ...

    Raises:
        ValueError: an argument out of range, an id in use, or no room for max_new_tokens after the prompt.
        TypeError: the manager cannot fork.
    """

    def __init__(
        self,
        decoder: Decoder,
        sequences,
        prompt_ids: Sequence[int],
        *,
        beam_width: int,
        max_new_tokens: int,
        length_penalty: float = 1.0,
        stop_ids: Iterable[int] | None = None,
        early_stopping: bool = False,
        request_id: Hashable = "beam",
    ):
        prompt_ids = list(prompt_ids)
        _check_whole("beam_width", beam_width)
        _check_whole("max_new_tokens", max_new_tokens)
        if not isfinite(length_penalty):
            raise ValueError(f"length_penalty is {length_penalty}: it must be a finite number.")
        if request_id in sequences.request_ids():
            raise ValueError(f"Request {request_id!r} is there already: release it or choose another id.")
        decoder.check_tokens(request_id, prompt_ids, held=max_new_tokens)
        if beam_width > 1:
            sequences.require_fork()
        self.decoder, self.sequences = decoder, sequences
        self.beam_width, self.max_new_tokens = beam_width, max_new_tokens
        self.length_penalty, self.early_stopping = length_penalty, early_stopping
        self.stop_ids = frozenset(decoder.stop_ids if stop_ids is None else stop_ids)
        self.beams = [Beam(request_id, (), 0.0, request_id)]
        self.steps: list[BeamStep] = []
        self._hypotheses: list[Hypothesis] = []
        self._prompt = prompt_ids
        names = (f"{request_id}.{number}" for number in count(1))
        self._names = (name for name in names if name not in sequences.request_ids())

    @property
    def finished(self) -> bool:
        """Whether the search is over; then no beam holds anything."""
        return not self.beams

    def hypotheses(self, n: int = 1) -> list[Hypothesis]:
        """The best n so far, best first; there are at most `beam_width`. ValueError for an n out of range."""
        if not 1 <= n <= self.beam_width:
            raise ValueError(f"n is {n}: a search of beam_width {self.beam_width} keeps 1 to that many.")
        return self._hypotheses[:n]

    def run(self, n: int = 1) -> list[Hypothesis]:
        """Search to the end: the best n hypotheses."""
        self.hypotheses(n)
        for _ in self:
            pass
        return self.hypotheses(n)

    def __iter__(self) -> Iterator[BeamStep]:
        while not self.finished:
            yield self.step()

    def step(self) -> BeamStep:
        """One token for every beam. RuntimeError when the search is over."""
        if self.finished:
            raise RuntimeError("this search is over: its hypotheses are all there.")
        feed = {beam.request_id: list(beam.tokens[-1:]) or self._prompt for beam in self.beams}
        logits = self.decoder.step(self.sequences, feed)
        ranked = self._rank(torch.stack(list(logits.values())))
        ended = self._end(ranked[: self.beam_width])
        going_on = [beam for beam in ranked if beam.tokens[-1] not in self.stop_ids][: self.beam_width]
        if self._is_over(going_on):
            going_on = []
        moves = plan_moves(list(feed), [beam.parent for beam in going_on], self._names)
        carry_out(moves, self.sequences)
        self.beams = [
            beam._replace(request_id=child) for beam, child in zip(going_on, moves.children, strict=True)
        ]
        copies = getattr(self.sequences, "copies", [])
        held = self.sequences.bytes_held
        self.steps.append(
            BeamStep(len(self.steps), copies, moves.released, moves.forked, self.beams, ended, held)
        )
        return self.steps[-1]

    def stop(self) -> None:
        """Give the search up: release all beams. The hypotheses so far stay."""
        for beam in self.beams:
            if self.sequences.length(beam.request_id):
                self.sequences.release(beam.request_id)
        self.beams = []

    def _rank(self, logits: Tensor) -> list[Beam]:
        """The best continuations of all beams, best first: enough for `beam_width` that do not stop."""
        before = torch.tensor([beam.log_probability for beam in self.beams], dtype=torch.float64)  # [S]
        totals = before[:, None] + logits.log_softmax(-1)  # float64 [S, vocab]
        most = self.beam_width * (1 + len(self.stop_ids))
        # stable, so that of equal continuations the better beam's, then the lower token id, comes first
        best, order = totals.flatten().sort(descending=True, stable=True)
        ranked = []
        for total, index in zip(best[:most].tolist(), order[:most].tolist(), strict=True):
            row, token = divmod(index, logits.shape[1])
            parent = self.beams[row]
            ranked.append(Beam(None, (*parent.tokens, token), total, parent.request_id))
        return ranked

    def _end(self, best: list[Beam]) -> list[Hypothesis]:
        """Make hypotheses of those that are finished; return those that are among the best so far."""
        ended = []
        for _, tokens, total, parent in best:
            if tokens[-1] in self.stop_ids or len(tokens) == self.max_new_tokens:
                why = "stop" if tokens[-1] in self.stop_ids else "length"
                ended.append(Hypothesis(tokens, total, self._score(total, len(tokens)), why, parent))
        everyone = sorted([*self._hypotheses, *ended], key=lambda one: -one.score)
        self._hypotheses = everyone[: self.beam_width]
        return [one for one in ended if one in self._hypotheses]

    def _is_over(self, going_on: list[Beam]) -> bool:
        if not going_on or len(going_on[0].tokens) == self.max_new_tokens:
            return True
        if len(self._hypotheses) < self.beam_width:
            return False
        # no token adds to a sum of log probabilities: the best that can come of it is to keep it
        length = self.max_new_tokens if self.length_penalty > 0 else len(going_on[0].tokens)
        best_to_come = self._score(going_on[0].log_probability, length)
        return self.early_stopping or best_to_come <= self._hypotheses[-1].score

    def _score(self, log_probability: float, length: int) -> float:
        return log_probability / length**self.length_penalty


def _check_whole(name: str, value: int) -> None:
    if not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} is {value!r}: it must be a whole number, at least 1.")
