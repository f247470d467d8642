"""What prefix caching costs: a decode step of one-token appends, and the lookup of a prompt.

Run: python bench/sharing.py
Prints medians, the quartiles around them and the fastest round: on a busy machine they are far apart.
The goal is for `append_slot`: 5 times what vLLM 0.33's KV cache manager made with caching on, one call an
append, which was 67,000 to 101,000 appends a second. `reserve` does more for its time: all blocks or none,
and a way back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median, quantiles
from time import perf_counter_ns

from kvlab import BlockManager, ExtraKeys
from kvlab.prefix_cache import sha256

REQUESTS, BLOCK_SIZE, STEPS, ROUNDS = 256, 16, 16, 40
PROMPT_TOKENS = 512
ENGINE_APPENDS = (67_000, 101_000)


def append_slots(manager: BlockManager, token: int) -> None:
    """One decode step, one call a request."""
    append_slot = manager.append_slot
    for request_id in range(REQUESTS):
        append_slot(request_id, token)


def reserve(manager: BlockManager, token: int) -> None:
    """One decode step, all or nothing, in one call."""
    with manager.reserve(dict.fromkeys(range(REQUESTS), (token,))):
        pass


def step_times(step: Callable, *, caching: bool) -> Iterator[float]:
    """Microseconds a decode step, each the mean over one whole block of growth from staggered starts."""
    for _ in range(ROUNDS):
        manager = BlockManager(REQUESTS * 3, BLOCK_SIZE, prefix_caching=caching)
        for request_id in range(REQUESTS):
            manager.append(request_id, [request_id] * (1 + request_id % BLOCK_SIZE))
        start = perf_counter_ns()
        for token in range(STEPS):
            step(manager, token)
        yield (perf_counter_ns() - start) / STEPS / 1e3


def lookup_times(*, hit: bool) -> Iterator[float]:
    """Microseconds to find the longest cached prefix of a prompt, hashing included."""
    manager = BlockManager(PROMPT_TOKENS // BLOCK_SIZE * 2, BLOCK_SIZE, prefix_caching=True)
    manager.append("cached", range(PROMPT_TOKENS))
    prompt = list(range(PROMPT_TOKENS))
    if not hit:
        prompt[0] += 1
    for _ in range(ROUNDS * 10):
        start = perf_counter_ns()
        found = manager.prefix_cache.longest_prefix(prompt, ExtraKeys())
        yield (perf_counter_ns() - start) / 1e3
        assert len(found) == ((PROMPT_TOKENS - 1) // BLOCK_SIZE if hit else 0)


def hashed_bytes(tokens: int) -> int:
    """Bytes that go through the hash while one request grows to this length, token by token."""
    total = 0

    def counting(parent: bytes, content: bytes) -> bytes:
        nonlocal total
        total += len(parent) + len(content)
        return sha256(parent, content)

    manager = BlockManager(tokens // BLOCK_SIZE + 1, BLOCK_SIZE, prefix_caching=True, block_hash=counting)
    for token in range(tokens):
        manager.append_slot("A", token)
    return total


def spread(times: Iterator[float]) -> tuple[float, str]:
    """The median, and it with its quartiles and the fastest round as text."""
    values = list(times)
    low, _, high = quantiles(values, n=4)
    return median(
        values
    ), f"{median(values):.0f} us (quartiles {low:.0f} to {high:.0f}, fastest {min(values):.0f})"


def report_step(name: str, step: Callable) -> None:
    """A decode step with caching off and on, and appends a second beside the engine's."""
    off, off_text = spread(step_times(step, caching=False))
    on, on_text = spread(step_times(step, caching=True))
    rate = REQUESTS / on * 1e6
    print(f"{REQUESTS} one-token appends by {name}: {on_text} with caching, {off_text} without")
    print(
        f"  {rate:,.0f} appends a second with caching, {rate / ENGINE_APPENDS[1]:.1f} to "
        f"{rate / ENGINE_APPENDS[0]:.1f} times the engine's; caching costs {on / off:.2f} times"
    )


if __name__ == "__main__":
    print(f"goal for append_slot: {5 * ENGINE_APPENDS[1]:,} appends a second")
    report_step("append_slot", append_slots)
    report_step("reserve", reserve)
    for hit in (True, False):
        found = "all cached" if hit else "a miss at once"
        print(f"lookup of {PROMPT_TOKENS} tokens, {found}: {spread(lookup_times(hit=hit))[1]}")
    short, long = hashed_bytes(1024), hashed_bytes(4096)
    print(
        f"bytes hashed while a request grows to 1,024 tokens: {short:,}; to 4,096: {long:,} "
        f"({long / short:.2f} times for 4 times the tokens: incremental)"
    )
