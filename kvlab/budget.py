"""From a card's memory to blocks, and back: the account of GPU memory and the inverse questions."""

from decimal import Decimal
from typing import NamedTuple

from kvlab.units import format_bytes
from kvlab.waste import blocks_for


class MemoryAccount(NamedTuple):
    """Three ways to spend `budget` = utilisation * total: weights, KV cache, the rest (activations)."""

    total: int
    budget: int
    weights: int
    kv: int
    rest: int
    outside: int


def memory_account(total: int, utilization, weights: int, kv: int) -> MemoryAccount:
    """Where a card's memory goes. rest = utilisation * total - weights - kv; outside = total - budget.

    ValueError when weights and KV are larger than the budget: then one of the figures is wrong.
    """
    budget = int(Decimal(str(utilization)) * total)
    rest = budget - weights - kv
    if rest < 0:
        raise ValueError(
            f"Weights of {format_bytes(weights)} and a KV cache of {format_bytes(kv)} need "
            f"{format_bytes(-rest)} more than {utilization} of {format_bytes(total)}, "
            f"which is {format_bytes(budget)}."
        )
    return MemoryAccount(total, budget, weights, kv, rest, total - budget)


def available_bytes(total: int, utilization, weights: int, rest: int = 0) -> int:
    """Bytes left for KV: utilisation * total - weights - rest (peak activations and the rest of the engine).

    With rest=0 this is an upper bound. Source: vLLM measures the rest in a profiling run and subtracts it.
    """
    left = int(Decimal(str(utilization)) * total) - weights - rest
    if left <= 0:
        raise ValueError(
            f"Nothing is left for the KV cache: {utilization} of {format_bytes(total)} is no more than the "
            f"weights ({format_bytes(weights)}) and the rest ({format_bytes(rest)}). "
            "Use a larger card, fewer bits, or more GPUs."
        )
    return left


def usable_blocks(num_blocks: int, null_block: bool = True) -> int:
    """Blocks that requests can have: one less than the pool when it keeps a null block.

    ValueError when that leaves none: such a pool would start and serve nothing (vLLM #27181).
    """
    usable = num_blocks - (1 if null_block else 0)
    if usable < 1:
        reserved = " and one of them is the null block" if null_block else ""
        raise ValueError(f"A pool of {num_blocks} blocks{reserved} can serve nothing. Give it more memory.")
    return usable


def request_problem(
    num_tokens: int, num_blocks: int, block_size: int, max_model_len: int, *, null_block: bool = True
) -> str | None:
    """Why a request of `num_tokens` can never run, in one sentence; None when it fits an empty pool.

    Two limits: the model's length, and ceil(tokens / B) <= usable blocks. A request within the first but
    not the second waits for ever unless it is refused when it arrives (vLLM #39734, #35541).
    """
    if num_tokens > max_model_len:
        return f"The request has {num_tokens:,} tokens, but the model takes at most {max_model_len:,}."
    needed, usable = blocks_for(num_tokens, block_size), usable_blocks(num_blocks, null_block)
    if needed > usable:
        note = f" ({num_blocks:,} with the null block, which is never handed out)" if null_block else ""
        return (
            f"The request needs {needed:,} blocks of {block_size} tokens, but the whole pool has "
            f"{usable:,}{note}: it would wait for ever."
        )
    return None


def budget_for_requests(
    num_requests: int, length: int, block_size: int, block_bytes: int, *, null_block: bool = False
) -> int:
    """Bytes for requests of `length` tokens at once: num_requests * ceil(length / B) * block_bytes.

    One block more when the pool keeps a null block.
    """
    if num_requests < 1 or length < 1 or block_bytes < 1:
        raise ValueError(
            f"num_requests, length and block_bytes must be at least 1, but are "
            f"{num_requests}, {length}, {block_bytes}."
        )
    return (num_requests * blocks_for(length, block_size) + (1 if null_block else 0)) * block_bytes


class ByteRange(NamedTuple):
    """Budgets from `low` up to, but not including, `high`."""

    low: int
    high: int

    @property
    def is_empty(self) -> bool:
        return self.low >= self.high

    def intersect(self, other: "ByteRange") -> "ByteRange":
        return ByteRange(max(self.low, other.low), min(self.high, other.high))


def budgets_that_fit(*logs: tuple[int, int]) -> ByteRange:
    """The budgets that give every one of these (num_blocks, block_bytes) pairs at once.

    One log allows num_blocks * block_bytes <= budget < (num_blocks + 1) * block_bytes; several logs
    allow what all of them do. ValueError when nothing fits: the logs are not of the same budget.
    """
    if not logs:
        raise ValueError("Give at least one (num_blocks, block_bytes) pair.")
    ranges = [ByteRange(blocks * size, (blocks + 1) * size) for blocks, size in logs]
    fits = ranges[0]
    for other in ranges[1:]:
        fits = fits.intersect(other)
    if fits.is_empty:
        raise ValueError(
            f"No single budget gives all of these: {', '.join(f'{b} blocks of {s} B' for b, s in logs)}."
        )
    return fits
