"""A block manager for layers that look back only so far: blocks behind the window go back at once.

A later token sees itself and the window - 1 tokens before it, so a block whose last token has left that
window will never be read again, however long the request still runs. It is given back when its request next
grows, before the new blocks are taken: between two steps the newest token's own window is still whole. In
the table a hole takes its place (the null block, or -1), so the others keep their logical numbers.

After vLLM 0.33: `remove_skipped_blocks`, with floor(skipped / B) leading blocks, skipped = max(0, computed -
W + 1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

from kvlab.block_manager import BlockManager
from kvlab.block_table import Slot
from kvlab.cached_start import CachedStart, Lookup
from kvlab.prefix_cache import ExtraKeys
from kvlab.reservation import Plan, Reservation, blocks_needed, hold_cached, make_plans
from kvlab.window_blocks import skipped_blocks

Tokens = Mapping[Hashable, int | Sequence[int]]


class WindowManager(BlockManager):
    """`BlockManager` for sliding-window (or chunked) attention.

    What is behind the window can be read by no later token, so giving it back is not part of a step: a step
    that is rolled back does not bring it back. A call that is refused still changes nothing. Forks share
    blocks as ever; each gives up its own hold, and the last one frees the block.

    A prefix-cache hit needs only the blocks that its next token still sees; those before them are holes from
    the start, and their slots in `Growth` name the hole.

    Args:
        window: tokens that the newest token attends to, itself included; None gives nothing back.
        chunked: chunked local attention: a token sees only its own chunk of `window` tokens.
        Others as for `BlockManager`.
    """

    def __init__(
        self, num_blocks: int, block_size: int, window: int | None, *, chunked: bool = False, **options
    ):
        super().__init__(num_blocks, block_size, **options)
        self._set_window(window, chunked)

    def _set_window(self, window: int | None, chunked: bool) -> None:
        if window is not None and (not isinstance(window, int) or window < 1):
            raise ValueError(f"window must be at least 1 token, or None for no window, got {window!r}")
        self.window, self.chunked = window, chunked

    def append_slot(self, request_id: Hashable, token: int | None = None) -> Slot:
        """As for `BlockManager`, after the blocks behind the window were given back."""
        return self._append_one(request_id, token)

    def can_append(self, tokens: Tokens) -> bool:
        """Whether `reserve(tokens)` would find enough blocks, those behind the window included."""
        return self._demand(make_plans(self, tokens, {})) <= self.num_free

    def num_holes(self, request_id: Hashable) -> int:
        """Leading blocks that the request does not hold: given back, or never needed."""
        return self._table(request_id).holes

    def _reserve(self, tokens: Tokens, keys: Mapping[Hashable, ExtraKeys]) -> Reservation:
        plans = self._plan(tokens, keys)
        self._pool.require(self._demand(plans))
        self._give_back(plans)
        return Reservation(self, plans, hold_cached(self._pool, plans))

    def _plan(
        self,
        tokens: Tokens,
        keys: Mapping[Hashable, ExtraKeys],
        starts: Mapping[Hashable, CachedStart] | None = None,
    ) -> list[Plan]:
        for request_id in tokens:
            self._refuse_reserved(request_id)
        return make_plans(self, tokens, keys, starts)

    def _cached_start(self, tokens: Sequence[int], keys: ExtraKeys) -> CachedStart:
        if self.window is None:
            return super()._cached_start(tokens, keys)
        lookup = self._lookup(tokens, keys)
        return lookup.start(lookup.longest(len(tokens)))

    def _lookup(self, tokens: Sequence[int], keys: ExtraKeys) -> Lookup:
        return Lookup(self.prefix_cache, tokens, keys, self._skipped)

    def _demand(self, plans: list[Plan]) -> int:
        """Blocks that must be free now: those that the step needs, less those that it gives back first."""
        leaving = Counter(block for plan in plans for block in self._behind(plan))
        freed = [block for block, times in leaving.items() if times == self._ref_counts[block]]
        hits = {block for plan in plans for block in plan.start.blocks}
        return blocks_needed(self, plans) - sum(block not in hits for block in freed)

    def _give_back(self, plans: list[Plan]) -> None:
        for plan in plans:
            behind = self._behind(plan)
            if behind:
                first = plan.table.holes
                holes = [self.hole] * len(behind)
                plan.table.blocks[first : first + len(behind)] = holes
                self._rows.write(plan.table.row, first, holes)
                plan.table.holes = first + len(behind)
                self._pool.drop(behind, plan.request_id)

    def _behind(self, plan: Plan) -> list[int]:
        """The request's blocks that its next token does not see and that it still holds."""
        if plan.table is None:
            return []
        return plan.table.blocks[plan.table.holes : self._skipped(plan.table.length)]

    def _skipped(self, computed: int) -> int:
        """Leading blocks that no token after the `computed` ones sees."""
        if self.window is None:
            return 0
        return skipped_blocks(computed, self.window, self.block_size, chunked=self.chunked)
