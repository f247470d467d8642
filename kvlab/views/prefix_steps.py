"""Run prompts against any manager with prefix caching and keep a frame of every step.

What a block holds is worked out here from the tables, so that a manager which finds the wrong block is
caught: the figure then says whose content it would have read.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kvlab.prefix_cache import START, ChainLink, PrefixCache
from kvlab.script import Operation
from kvlab.state import State, snapshot, violations
from kvlab.views import prefix_telling
from kvlab.views.prompt_tokens import Token

_MADE_UP = 1_000_000_000  # ids of tokens that a request generates; no tokenizer uses them


@dataclass(frozen=True)
class PrefixFrame:
    """The state after one step.

    tokens: every prompt, with what its request has generated, known before it arrives. chains: the hashes of
    their full blocks. found: by live request, how many leading tokens it found. contents: what the full
    blocks hold, free ones too, as far as the manager can still find it. evicted: content that this step
    dropped. freed, touched: blocks that joined the free queue, or were found, in this step.
    """

    step: int
    operation: Operation | None
    state: State
    telling: str
    tokens: Mapping[Hashable, tuple[Token, ...]]
    chains: Mapping[Hashable, tuple[ChainLink, ...]]
    found: Mapping[Hashable, int] = field(default_factory=dict)
    ended: frozenset = frozenset()
    contents: Mapping[int, ChainLink] = field(default_factory=dict)
    evicted: Mapping[int, ChainLink] = field(default_factory=dict)
    freed: tuple[int, ...] = ()
    touched: tuple[int, ...] = ()
    asked_and_found: tuple[int, int] = (0, 0)
    error: str | None = None
    bad_blocks: tuple[int, ...] = ()


def record_prefixes(
    prompts: Mapping[Hashable, Sequence[Token]], script: Sequence[Operation], manager: Any
) -> list[PrefixFrame]:
    """Run "append X" (X arrives with its prompt), "append X 2" on a live X (it generates) and "release X".

    A refusal for want of blocks is told and the script goes on; any other error ends it in a last frame.
    """
    run = _Run(prompts, manager)
    frames = [run.frame(0, None, "Before the first step: no block holds anything.")]
    for step, operation in enumerate(script, start=1):
        frames.append(run.step(step, operation))
        if frames[-1].error is not None:
            break
    return frames


class _Run:
    """One run of a script: the manager, and what is known of its blocks."""

    def __init__(self, prompts: Mapping[Hashable, Sequence[Token]], manager: Any):
        self.manager = manager
        self.tokens = {rid: tuple(tokens) for rid, tokens in prompts.items()}
        self.prompts = dict(self.tokens)
        self.cache = getattr(manager, "prefix_cache", None)
        # A learner's own pool may keep its hashes elsewhere: the links are then ours.
        follow = getattr(self.cache, "follow", None) or PrefixCache(manager.block_size).follow
        self.follow = follow
        self.chains = {rid: self.chain(tokens) for rid, tokens in self.tokens.items()}
        self.live: list[Hashable] = []
        self.ended: set[Hashable] = set()
        self.found: dict[Hashable, int] = {}
        self.contents: dict[int, ChainLink] = {}
        self.asked = self.hit = self.made_up = 0
        self.state = snapshot(manager, [])

    def chain(self, tokens: Sequence[Token]) -> tuple[ChainLink, ...]:
        size, link, chain = self.manager.block_size, START, []
        for end in range(size, len(tokens) + 1, size):
            link = self.follow(link, [token.id for token in tokens[end - size : end]])
            chain.append(link)
        return tuple(chain)

    def step(self, step: int, operation: Operation) -> PrefixFrame:
        before, known, rid = self.state, dict(self.contents), operation.request_id
        arrives, touched, error = rid not in self.live, (), None
        try:
            if operation.kind == "release":
                self.release(rid)
            else:
                touched = self.append(rid, operation.count, arrives)
            self.state = snapshot(self.manager, self.live)
        except MemoryError as refused:
            telling = f"{rid} is refused: {refused}. Nothing changed."
            return self.frame(step, operation, telling)
        except Exception as raised:
            error = prefix_telling.sentence(raised)
            return self.frame(step, operation, f"{operation.kind} {rid} raises {error}.", error=error)
        self.learn()
        more = {
            "evicted": {
                block: link
                for block, link in known.items()
                if block in before.free and self.contents.get(block) != link
            },
            "freed": tuple(block for block in self.state.free if block not in set(before.free)),
            "touched": touched,
        }
        frame = self.frame(step, operation, "", **more)
        broken = violations(self.state)
        return replace(
            frame,
            telling=prefix_telling.tell(frame, before, known, arrives),
            error=self.misread(rid, known, touched) or next((v.sentence for v in broken), None),
            bad_blocks=tuple(v.block for v in broken if v.block is not None),
        )

    def release(self, rid: Hashable) -> None:
        self.manager.release(rid)
        self.live.remove(rid)
        self.ended.add(rid)
        self.found.pop(rid, None)

    def append(self, rid: Hashable, count: int, arrives: bool) -> tuple[int, ...]:
        """Append a prompt, or generated tokens; returns the blocks that were found."""
        if not arrives:
            new = tuple(Token(_MADE_UP + self.made_up + i, f"+{i + 1}") for i in range(count))
            self.manager.append(rid, [token.id for token in new])
            self.made_up += count
            self.tokens[rid] += new
            self.chains[rid] = self.chain(self.tokens[rid])
            return ()
        tokens = self.prompts[rid]
        growth = self.manager.append(rid, [token.id for token in tokens])
        self.tokens[rid] = tokens
        self.chains[rid] = self.chain(tokens)
        self.live.append(rid)
        self.ended.discard(rid)
        table = list(self.manager.block_table(rid))
        cached = getattr(growth, "cached", None)
        if not isinstance(cached, int):  # it says nothing: read off its table which blocks it found
            cached = self.manager.block_size * _matches(table, self.chains[rid], self.contents)
        self.found[rid] = cached
        self.asked += len(tokens)
        self.hit += cached
        return tuple(table[: cached // self.manager.block_size])

    def learn(self) -> None:
        """Note what the full blocks hold now, and forget what the manager has forgotten."""
        size = self.manager.block_size
        for rid in self.live:
            full = self.state.lengths[rid] // size
            for block, link in zip(self.state.tables[rid][:full], self.chains[rid], strict=False):
                self.contents[block] = link
            for block in self.state.tables[rid][full:]:
                self.contents.pop(block, None)
        if self.cache is None and hasattr(self.manager, "prefix_cache"):
            self.contents = {}  # it says itself that it caches nothing
        elif hasattr(self.cache, "__contains__"):
            self.contents = {b: link for b, link in self.contents.items() if b in self.cache}

    def misread(self, rid: Hashable, known: Mapping[int, ChainLink], touched: Sequence[int]) -> str | None:
        """What is wrong with the blocks that a request took for hits."""
        found = self.found.get(rid, 0)
        if touched and found >= len(self.tokens[rid]):
            return f"{rid} found all of its {found} tokens: none is left to compute, so there are no logits"
        for place, (block, link) in enumerate(zip(touched, self.chains[rid], strict=False)):
            held = known.get(block)
            if held is None or held.proof != link.proof:
                size = self.manager.block_size
                what = "nothing that is known" if held is None else "the KV of other tokens"
                return (
                    f"{rid} takes block {block} as a hit for its tokens {place * size} to "
                    f"{place * size + size - 1}, but block {block} holds {what}"
                )
        return None

    def frame(self, step: int, operation: Operation | None, telling: str, **more: Any) -> PrefixFrame:
        return PrefixFrame(
            step,
            operation,
            self.state,
            telling,
            dict(self.tokens),
            dict(self.chains),
            dict(self.found),
            frozenset(self.ended),
            dict(self.contents),
            asked_and_found=(self.asked, self.hit),
            **more,
        )


def _matches(table: Sequence[int], chain: Sequence[ChainLink], known: Mapping[int, ChainLink]) -> int:
    """How many leading blocks of a table held this content before."""
    count = 0
    for block, link in zip(table, chain, strict=False):
        held = known.get(block)
        if held is None or held.proof != link.proof:
            break
        count += 1
    return count
