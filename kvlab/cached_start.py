"""Where a new request can start: how much of its prompt needs no computing, and the blocks that hold it.

The next token must find all that it sees. In a full-attention layer that is every block before it; with a
window only the last few, and what lies in front of them may be long gone. Layers of several kinds have to
agree on one start.

Source: vLLM 0.33, find_longest_cache_hit of the single-type managers and of the hybrid coordinator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import lcm
from typing import NamedTuple

from kvlab.prefix_cache import ChainLink, ExtraKeys, PrefixCache


class CachedStart(NamedTuple):
    """holes: leading blocks that no token will read. blocks: those after them, from the cache. link: of the
    last block of the start, in the chain of hashes; None when the start is empty."""

    holes: int = 0
    blocks: tuple[int, ...] = ()
    link: ChainLink | None = None

    @property
    def num_blocks(self) -> int:
        """Logical blocks that need no computing."""
        return self.holes + len(self.blocks)


class Lookup:
    """One prompt against one cache.

    Whole blocks only, and never the last token: at least one must be computed to have logits to sample from.

    Args:
        skipped: (computed tokens) -> leading blocks that no later token sees; None: each sees all.
    """

    def __init__(
        self,
        cache: PrefixCache,
        tokens: Sequence[int],
        keys: ExtraKeys,
        skipped: Callable[[int], int] | None = None,
    ):
        self.block_size = cache.block_size
        self._skipped = skipped or (lambda computed: 0)
        self._links = list(cache.links(tokens, keys, len(tokens) - 1))
        self._blocks = [cache.find(link) for link in self._links]
        # For each start, in blocks: how many cached blocks in a row lead up to it.
        self._in_a_row = [0]
        for block in self._blocks:
            self._in_a_row.append(0 if block is None else self._in_a_row[-1] + 1)

    def longest(self, limit: int) -> int:
        """The most tokens, at most `limit`, after which the next token finds all that it sees.

        Searched from the right, since with a window a longer start may be there when a shorter one is not.
        """
        most = min(limit // self.block_size, len(self._links))
        fits = (n for n in range(most, -1, -1) if self._in_a_row[n] >= n - self._skipped(n * self.block_size))
        return next(fits) * self.block_size

    def start(self, num_tokens: int) -> CachedStart:
        """The blocks of a start that `longest` gave."""
        end = num_tokens // self.block_size
        if not end:
            return CachedStart()
        holes = self._skipped(num_tokens)
        return CachedStart(holes, tuple(self._blocks[holes:end]), self._links[end - 1])


def common_start(lookups: Sequence[Lookup]) -> int:
    """The longest start, in tokens, that every group of layers finds: whole blocks of all of them.

    A fixed point: each group shortens what the ones before it left, until none does. A start that suits one
    group is not always a shorter start of the others, so one round is not enough.
    """
    unit = lcm(*(lookup.block_size for lookup in lookups))
    length, before = sys.maxsize, None
    while length != before:
        before = length
        for lookup in lookups:
            length = lookup.longest(length) // unit * unit
    return length
