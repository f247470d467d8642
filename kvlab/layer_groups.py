"""Layers of several kinds in one pool of blocks: groups with one page size, and what a request needs.

One block id means the same bytes for every group, so the pages of all groups must have one size. Layers
are sorted by kind, each kind is cut into groups of `layers_per_group` layers, and a block of the pool has
room for one page of each layer of ONE group: groups take different blocks, a request holds blocks of all.

Rules after vLLM 0.33 (kv_cache_utils, read in its source distribution).
"""

from dataclasses import dataclass
from math import gcd, lcm

from kvlab.layer_kinds import Layer, ceil_div

DEFAULT_IN_FLIGHT = 2048
"""Tokens that one step may add over all requests: vLLM's default of max_num_batched_tokens."""
DEFAULT_ALIGNMENT = 16
"""A block size that is raised to fit a linear state is rounded up to a multiple of this many tokens."""


@dataclass(frozen=True)
class Group:
    """`num_layers` layers of one kind that share block tables. `page_bytes`: one layer's part of a block."""

    layer: Layer
    num_layers: int
    block_size: int
    page_bytes: int

    @property
    def kind(self) -> str:
        return self.layer.kind

    def blocks_per_request(
        self,
        length: int,
        in_flight: int = DEFAULT_IN_FLIGHT,
        *,
        context_parallel: int = 1,
        state_blocks: int = 1,
    ) -> int:
        """The most blocks of this group that a request of `length` tokens holds on one GPU.

        Context parallelism deals the tokens of full attention over `context_parallel` GPUs:
        ceil(ceil(length / cp) / B). A linear state is kept whole on each. Windows refuse it, as vLLM does.
        """
        if context_parallel > 1:
            if self.kind in ("sliding", "chunked"):
                raise ValueError(
                    f"Context parallelism over {context_parallel} GPUs does not work with {self.kind} "
                    "layers: a window is too short to be dealt out. Use 1."
                )
            length = ceil_div(length, context_parallel)
        return self.layer.blocks_for(length, self.block_size, in_flight, state_blocks)

    def effective_block_size(self, context_parallel: int = 1) -> int:
        """Tokens that one block covers over all GPUs: B * cp for attention, B for a linear state."""
        return self.block_size * (context_parallel if self.layer.is_attention else 1)


@dataclass(frozen=True)
class Plan:
    """How a model's layers share a pool. `block_bytes` is what one block of the pool costs."""

    groups: tuple[Group, ...]
    layers_per_group: int
    block_bytes: int

    @property
    def block_size(self) -> int:
        """Tokens in a block of the first attention group; larger than asked for when a linear state is."""
        return next((g.block_size for g in self.groups if g.layer.is_attention), self.groups[0].block_size)

    @property
    def is_hybrid(self) -> bool:
        return len(self.groups) > 1

    def num_blocks(self, available_bytes: int) -> int:
        """available // block_bytes: whole blocks only. Source: vLLM, get_num_blocks."""
        return max(0, available_bytes // self.block_bytes)

    def blocks_per_request(self, length: int, in_flight: int = DEFAULT_IN_FLIGHT, **options) -> int:
        """Blocks of all groups that one request of `length` tokens holds at most: the sum over the groups."""
        if length < 1:
            raise ValueError(f"A request needs at least 1 token, not {length}.")
        return sum(group.blocks_per_request(length, in_flight, **options) for group in self.groups)

    def concurrency(
        self, num_blocks: int, length: int, in_flight: int = DEFAULT_IN_FLIGHT, **options
    ) -> float:
        """Requests of `length` tokens at once: num_blocks / blocks of one request, not rounded.

        Like the engine's log it counts the null block, which no request can have: see
        `budget.request_problem`.
        """
        return num_blocks / self.blocks_per_request(length, in_flight, **options)

    def logged_tokens(self, num_blocks: int, length: int, in_flight=DEFAULT_IN_FLIGHT, **options) -> int:
        """The "GPU KV cache size" of newer logs: int(concurrency * length), right for hybrid models too.

        In floating point, as the engine does it, so it can be one token less than the exact quotient.
        Source: vLLM, get_kv_cache_capacity.
        """
        return int(self.concurrency(num_blocks, length, in_flight, **options) * length)

    def tokens_by_old_formula(self, num_blocks: int) -> int:
        """The "GPU KV cache size" of older logs: num_blocks // groups * B.

        It treats every group as if it kept the whole text, so it is too small for hybrid models
        (vLLM issue #40691: 26,656 where 55,463 is right).
        """
        return num_blocks // len(self.groups) * min(group.block_size for group in self.groups)

    def scheduler_block_size(self, context_parallel: int = 1) -> int:
        """Tokens by which the scheduler advances: the LCM of the groups' effective block sizes."""
        return lcm(*(group.effective_block_size(context_parallel) for group in self.groups))

    def hash_block_size(self, override: int | None = None, context_parallel: int = 1) -> int:
        """Tokens per block hash: see the function of this name."""
        return hash_block_size([g.effective_block_size(context_parallel) for g in self.groups], override)


def hash_block_size(group_block_sizes: list[int], override: int | None = None) -> int:
    """Tokens per block hash for groups of these block sizes: the override, or else their GCD.

    Each group's block must be a whole number of hashes, so the override must divide every size; otherwise
    ValueError names the groups that it does not divide. Source: vLLM, resolve_block_hashes (the override
    is its prefix_match_unit).
    """
    if not group_block_sizes or any(size < 1 for size in group_block_sizes):
        raise ValueError(f"Block sizes must be at least 1 token, but are {list(group_block_sizes)}.")
    if override is None:
        return gcd(*group_block_sizes)
    if override < 1:
        raise ValueError(f"A hash covers at least 1 token, not {override}.")
    bad = [f"group {i} ({size} tokens)" for i, size in enumerate(group_block_sizes) if size % override]
    if bad:
        raise ValueError(
            f"A hash of {override} tokens does not divide the block of {', '.join(bad)}. "
            f"Choose a divisor of {gcd(*group_block_sizes)}."
        )
    return override


def hashes_per_block(group_block_size: int, hash_size: int) -> int:
    """Hashes that one block of a group covers: a coarser group looks at every k-th hash, k = size / hash."""
    return group_block_size // hash_block_size([group_block_size], hash_size)


def layers_in_a_group(counts: list[int]) -> int:
    """Layers per group for kinds that have these layer counts: the smallest, unless it hardly differs.

    The smallest count; but the largest when it is under 1.5 times the smallest, because one padded group is
    then cheaper than a second group. Source: vLLM, _get_kv_cache_groups_uniform_page_size.
    """
    smallest, largest = min(counts), max(counts)
    return largest if 2 * largest < 3 * smallest else smallest


def plan_groups(
    layers, block_size: int, number_bytes: int, *, state_bytes_of=None, alignment: int = DEFAULT_ALIGNMENT
) -> Plan:
    """Sort `layers` into groups that share one pool of blocks.

    `number_bytes` is the size of one KV number, `state_bytes_of(layer)` the bytes of a linear layer's state.
    Raises ValueError when no single page size fits all kinds of layer.
    """
    if block_size < 1:
        raise ValueError(f"block_size must be at least 1 token, not {block_size}.")
    kinds = _by_kind(layers)
    if all(layer.kind == "full" for layer in kinds):
        return _one_group_of_full(layers, block_size, number_bytes)
    size = _raised_block_size(kinds, block_size, number_bytes, state_bytes_of, alignment)
    pages = {k: k.token_bytes(number_bytes) * size if k.is_attention else state_bytes_of(k) for k in kinds}
    page = max(pages.values())
    per_group = layers_in_a_group(list(kinds.values()))
    groups = []
    for kind, count in kinds.items():
        kind_size = size
        if kind.is_attention:
            if page % pages[kind]:
                raise ValueError(
                    f"The {kind.kind} layers' page of {pages[kind]:,} B does not divide the largest page, "
                    f"{page:,} B, so these layers cannot share one pool of blocks."
                )
            kind_size = size * (page // pages[kind])
        left = count
        while left > 0:
            groups.append(Group(kind, min(per_group, left), kind_size, page))
            left -= per_group
    return Plan(tuple(groups), per_group, page * per_group)


def _by_kind(layers) -> dict[Layer, int]:
    """Each kind of layer with its count; full attention first, as vLLM searches hits in that order."""
    counts: dict[Layer, int] = {}
    for layer in layers:
        counts[layer] = counts.get(layer, 0) + 1
    if not counts:
        raise ValueError("A model needs at least one layer.")
    return dict(sorted(counts.items(), key=lambda item: item[0].kind != "full"))


def _one_group_of_full(layers, block_size: int, number_bytes: int) -> Plan:
    """All layers keep every token: one group, even when heads differ; a block is the sum of the pages."""
    block_bytes = sum(layer.token_bytes(number_bytes) for layer in layers) * block_size
    group = Group(layers[0], len(layers), block_size, layers[0].token_bytes(number_bytes) * block_size)
    return Plan((group,), len(layers), block_bytes)


def _raised_block_size(kinds, block_size: int, number_bytes: int, state_bytes_of, alignment: int) -> int:
    """The block size at which an attention page is no smaller than a linear layer's state.

    ceil(state bytes / (alignment * bytes of a token and layer)) * alignment. Source: vLLM, which logs
    "Setting attention block size to 544 tokens" for Qwen3-Next-80B by this rule.
    """
    states = [state_bytes_of(kind) for kind in kinds if not kind.is_attention]
    tokens = [kind.token_bytes(number_bytes) for kind in kinds if kind.is_attention]
    if not states or not tokens:
        return block_size
    needed = ceil_div(max(states), alignment * max(tokens)) * alignment
    return max(block_size, needed)
