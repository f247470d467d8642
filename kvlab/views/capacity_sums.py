"""The figures of the capacity calculator, each with its formula and the numbers in it."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from kvlab.budget import MemoryAccount, available_bytes, memory_account
from kvlab.layer_groups import DEFAULT_IN_FLIGHT, Plan
from kvlab.layer_kinds import Layer
from kvlab.model_shapes import named_shape
from kvlab.sizing import ModelShape
from kvlab.units import format_bytes, parse_bytes, parse_count, parse_share

_PARAMETERS = re.compile(r"-(\d+(?:\.\d+)?)([bm])(?:-|$)")


class Question(NamedTuple):
    """What the learner chose, numbers as typed. Empty weights are taken from the model's name."""

    model: str = "qwen2.5-7b"
    memory: str = "24GiB"
    utilization: str = "0.9"
    weights: str = "14.19GiB"
    rest: str = "1.73GiB"
    kv_dtype: str = "auto"
    block_size: int = 16
    max_len: str = "8192"


class Line(NamedTuple):
    """One figure: its value, what it is, and how it comes about."""

    value: str
    what: str
    formula: str


class Capacity(NamedTuple):
    """All answers. memory: a line for each part of the card, in the order of `account`'s bar."""

    question: Question
    account: MemoryAccount
    memory: tuple[Line, ...]
    chain: tuple[Line, ...]
    num_blocks: int
    blocks_per_request: int
    max_len: int

    @property
    def requests(self) -> float:
        """Requests of the longest length at once, not rounded."""
        return self.num_blocks / self.blocks_per_request


def work_out(question: Question) -> Capacity:
    """Everything that follows from a question.

    Raises:
        ValueError: a size, share or number that cannot be read, or a card that is too small, in one sentence.
    """
    shape = named_shape(question.model)
    total, share = parse_bytes(question.memory), parse_share(question.utilization)
    weights, weights_from = _weights(question)
    rest = parse_bytes(question.rest) if question.rest.strip() else 0
    max_len = parse_count(question.max_len, "the longest request")
    kv_dtype = None if question.kv_dtype == "auto" else question.kv_dtype
    kv = available_bytes(total, share, weights, rest)
    account = memory_account(total, share, weights, kv)
    plan = shape.plan(question.block_size, kv_dtype)
    blocks, needed = plan.num_blocks(kv), plan.blocks_per_request(max_len)
    if not blocks:
        raise ValueError(
            f"{format_bytes(kv)} is less than one block of {format_bytes(plan.block_bytes)}: "
            "give the KV cache more memory or take smaller blocks."
        )
    whole = format_bytes(total)
    memory = (
        Line(format_bytes(weights), "weights", weights_from),
        Line(format_bytes(rest), "the rest", "as typed: activations and what else the engine needs"),
        Line(
            format_bytes(kv),
            "KV cache",
            f"{share} × {whole} − {format_bytes(weights)} − {format_bytes(rest)}",
        ),
        Line(format_bytes(account.outside), "left alone", f"(1 − {share}) × {whole}"),
    )
    chain = tuple(_chain(shape, plan, question, kv, max_len))
    return Capacity(question, account, memory, chain, blocks, needed, max_len)


def sum_up(capacity: Capacity) -> str:
    """The answer in one line."""
    question, count = capacity.question, capacity.requests
    many = f"{count:,.2f} requests" if count >= 1 else f"only {count:.2f} of a request"
    return f"{question.model} in {question.memory.strip()}: {many} of {capacity.max_len:,} tokens at once"


def _weights(question: Question) -> tuple[int, str]:
    if question.weights.strip():
        return parse_bytes(question.weights), "as typed: the size of the checkpoint"
    found = _PARAMETERS.search(question.model)
    if not found:
        raise ValueError(
            f"The name {question.model} does not say how large the weights are: type them, such as 100GiB."
        )
    number, unit = found.groups()
    power = {"b": 9, "m": 6}[unit]
    return int(Decimal(number) * 10**power * 2), f"{number} × 10{'⁹' if power == 9 else '⁶'} parameters × 2 B"


def _chain(shape: ModelShape, plan: Plan, question: Question, kv: int, max_len: int) -> Iterator[Line]:
    """From a token to the requests at once."""
    kv_dtype = None if question.kv_dtype == "auto" else question.kv_dtype
    token, block_size = shape.kv_bytes_per_token(kv_dtype), plan.block_size
    blocks, needed = plan.num_blocks(kv), plan.blocks_per_request(max_len)
    simple = not plan.is_hybrid and plan.groups[0].kind == "full"
    yield Line(f"{token:,} B", "a token", token_formula(shape, kv_dtype))
    yield Line(f"{plan.block_bytes:,} B", "a block", _block_formula(plan, question.block_size, token))
    left = format_bytes(kv - blocks * plan.block_bytes)
    yield Line(f"{blocks:,}", "blocks", f"{kv:,} B // {plan.block_bytes:,} B, {left} left over")
    tokens = blocks * block_size if simple else plan.logged_tokens(blocks, max_len)
    how = f"{blocks:,} × {block_size}" if simple else f"{blocks / needed:,.2f} × {max_len:,}, as logs count"
    yield Line(f"{tokens:,}", "tokens", how)
    yield Line(f"{needed:,}", "blocks a request", _needed_formula(plan, max_len))
    yield Line(f"{blocks / needed:,.2f}", "requests at once", f"{blocks:,} / {needed:,}")


def token_formula(shape: ModelShape, kv_dtype: str | None) -> str:
    """Where the bytes of a token come from: KV heads, not query heads; K and V; the layers that keep them."""
    number = shape.number_bytes(kv_dtype)
    counts: dict[tuple[int, int, int], int] = {}
    for layer in shape.attention_layers:
        key = layer.num_kv_heads, layer.head_size, layer.head_size_v
        counts[key] = counts.get(key, 0) + 1
    parts = [_kind_formula(count, *key, number) for key, count in counts.items()]
    others = shape.num_layers - len(shape.attention_layers)
    return " + ".join(parts) + (f"; {others} layers keep a state instead" if others else "")


def _kind_formula(count: int, heads: int, k: int, v: int, number: int) -> str:
    if k == v:
        return f"2 × {count} layers × {heads} KV heads × {k} × {number} B"
    if not v:
        return f"{count} layers × {k} × {number} B: one latent for K and V"
    return f"{count} layers × {heads} KV heads × ({k} + {v}) × {number} B"


def _block_formula(plan: Plan, asked: int, token: int) -> str:
    if not plan.is_hybrid:
        return f"{plan.block_size} × {token:,} B"
    raised = f" of {plan.block_size} tokens" if plan.block_size != asked else ""
    page = plan.groups[0].page_bytes
    shared = f"{len(plan.groups)} groups share the pool"
    return f"{plan.layers_per_group} layers × {page:,} B a page{raised}; {shared}"


def _needed_formula(plan: Plan, max_len: int) -> str:
    layer: Layer = plan.groups[0].layer
    if not plan.is_hybrid and layer.kind == "full":
        return f"⌈{max_len:,} / {plan.block_size}⌉"
    counts: dict[tuple[str, int], int] = {}
    for group in plan.groups:
        key = group.kind, group.blocks_per_request(max_len, DEFAULT_IN_FLIGHT)
        counts[key] = counts.get(key, 0) + 1
    parts = [f"{f'{n} × ' if n > 1 else ''}{blocks:,} {kind}" for (kind, blocks), n in counts.items()]
    return " + ".join(parts)
