"""What sharing, counts and a kernel-ready table cost a decode step, against a manager without any of them.

Run: python bench/append_step.py
Prints medians over rounds in which both managers take turns: 256 requests, one token each, block size 16.
"""

from __future__ import annotations

from collections import deque
from statistics import median
from time import perf_counter_ns

from kvlab import BlockManager

REQUESTS, BLOCK_SIZE, STEPS, ROUNDS = 256, 16, 16, 40


class BareManager:
    """The least that works: a deque of free blocks, a dict of tables, a dict of lengths."""

    def __init__(self, num_blocks: int, block_size: int):
        self.block_size = block_size
        self.free = deque(range(num_blocks))
        self.tables: dict[int, list[int]] = {}
        self.lengths: dict[int, int] = {}

    def append_slot(self, request_id: int) -> tuple[int, int]:
        table = self.tables.setdefault(request_id, [])
        length = self.lengths.get(request_id, 0)
        logical_block, offset = divmod(length, self.block_size)
        if logical_block == len(table):
            if not self.free:
                raise MemoryError("no free block")
            table.append(self.free.popleft())
        self.lengths[request_id] = length + 1
        return table[logical_block], offset

    def release(self, request_id: int) -> None:
        self.free.extend(self.tables.pop(request_id))
        del self.lengths[request_id]


def step_time(manager) -> float:
    """Microseconds a step, averaged over one whole block of growth from staggered starts."""
    for request_id in range(REQUESTS):
        for _ in range(1 + request_id % BLOCK_SIZE):
            manager.append_slot(request_id)
    ids = range(REQUESTS)
    append_slot = manager.append_slot
    start = perf_counter_ns()
    for _ in range(STEPS):
        for request_id in ids:
            append_slot(request_id)
    elapsed = perf_counter_ns() - start
    for request_id in ids:
        manager.release(request_id)
    return elapsed / STEPS / 1e3


def measure(rounds: int = ROUNDS) -> tuple[float, float, float]:
    """Median microseconds of a step (bare, kvlab) and the median of the ratios within each round."""
    num_blocks = REQUESTS * 3
    bare, full = BareManager(num_blocks, BLOCK_SIZE), BlockManager(num_blocks, BLOCK_SIZE)
    step_time(bare), step_time(full)
    pairs = [(step_time(bare), step_time(full)) for _ in range(rounds)]
    return median(b for b, _ in pairs), median(f for _, f in pairs), median(f / b for b, f in pairs)


def table_time(rounds: int = 200) -> float:
    """Median microseconds to have block tables [256, 512] ready for a kernel."""
    manager = BlockManager(REQUESTS * 512, BLOCK_SIZE)
    for request_id in range(REQUESTS):
        manager.append(request_id, 512 * BLOCK_SIZE)
    ids = manager.request_ids()
    times = []
    for _ in range(rounds):
        start = perf_counter_ns()
        manager.block_table_array(ids)
        times.append((perf_counter_ns() - start) / 1e3)
    return median(times)


if __name__ == "__main__":
    bare, full, ratio = measure()
    print(
        f"256 one-token appends: bare {bare:.0f} us, kvlab {full:.0f} us, ratio {ratio:.2f} (goal: at most 2)"
    )
    print(f"block tables [256, 512] for a kernel: {table_time():.0f} us (goal: under 200)")
