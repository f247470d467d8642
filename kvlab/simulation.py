"""A workload on an allocator, slot by slot: who is running, what is wasted, how many fit.

Every running request gets one token a step, as in iteration-level scheduling (Orca, OSDI 2022). Before that,
waiting requests are admitted in order of arrival, each as soon as the allocator has a place for it; nobody
overtakes. A request that gets its last token leaves at the end of the step. When the allocator has no slot
for a running request's next token, the request admitted last is preempted: its slots are free, and it goes
to the front of the queue with all tokens so far as its prompt (recomputation).

Averages are taken over the steps in which somebody was waiting, so that they show a full memory: at the
start and at the end of a run it is not the allocator that limits the batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kvlab.allocator import Account, Allocator
from kvlab.workloads import Request, Workload

Progress = Callable[[int, int], None]


class Result(NamedTuple):
    """Figures of one run. Shares are of all slots, 0 to 1, averaged over the `steps_counted` full steps.

    batch: running requests. held: tokens / slots that belong to a request. refused: could never fit.
    copies: tokens moved to make room. peak_batch: the most requests that ran at once.
    """

    allocator: str
    workload: str
    tokens: float
    reserved: float
    internal: float
    external: float
    held: float
    batch: float
    peak_batch: int
    finished: int
    refused: int
    preempted: int
    copies: int
    steps: int
    steps_counted: int


@dataclass(slots=True)
class _Running:
    request: Request
    left: int


class Simulation:
    """One run, a step at a time; `run` below does all steps.

    Args:
        step_seconds: how long a step takes, which decides how many requests have arrived by then.
    """

    def __init__(self, workload: Workload, allocator: Allocator, *, step_seconds: float = 0.05):
        if not step_seconds > 0:
            raise ValueError(f"step_seconds must be positive, not {step_seconds}")
        self.workload, self.allocator, self.step_seconds = workload, allocator, step_seconds
        self.waiting: deque[tuple[Request, int]] = deque()
        self.running: dict[int, _Running] = {}
        self.finished = self.refused = self.preempted = self.steps = 0
        self.peak_batch = self.counted_steps = self.batch_sum = 0
        self.sums = [0, 0, 0, 0]
        self.held_sum = 0.0
        self._coming = deque(sorted(workload.requests, key=lambda request: request.arrival))

    @property
    def done(self) -> bool:
        return not (self._coming or self.waiting or self.running)

    def step(self) -> Account:
        """Let requests arrive, admit them, give every running one a token; the account after that."""
        self._arrive()
        self._admit()
        full = bool(self.waiting)
        self._decode()
        account = self.allocator.account()
        self.steps += 1
        self.peak_batch = max(self.peak_batch, len(self.running))
        if full:
            self._measure(account)
        for request_id in [i for i, running in self.running.items() if not running.left]:
            self.allocator.release(request_id)
            del self.running[request_id]
            self.finished += 1
        return account

    def result(self) -> Result:
        """The figures so far; if the memory was never full, shares and batch are 0."""
        n = self.counted_steps or 1
        shares = [part / n / self.allocator.num_slots for part in self.sums]
        return Result(
            self.allocator.name,
            self.workload.name,
            *shares,
            self.held_sum / n,
            self.batch_sum / n,
            self.peak_batch,
            self.finished,
            self.refused,
            self.preempted,
            self.allocator.copies,
            self.steps,
            self.counted_steps,
        )

    def _arrive(self) -> None:
        users = self.workload.users
        now = self.steps * self.step_seconds
        while self._coming and (self._coming[0].arrival <= now or not (self.waiting or self.running)):
            if users is not None and len(self.waiting) + len(self.running) >= users:
                return
            if self._coming[0].arrival > now:
                self.steps = max(self.steps, round(self._coming[0].arrival / self.step_seconds))
                now = self._coming[0].arrival
            request = self._coming.popleft()
            if self.allocator.problem(request.prompt, request.output):
                self.refused += 1
            else:
                self.waiting.append((request, 0))

    def _admit(self) -> None:
        while self.waiting:
            request, made = self.waiting[0]
            try:
                self.allocator.admit(request.request_id, request.prompt + made, request.output - made)
            except MemoryError:
                return
            self.waiting.popleft()
            self.running[request.request_id] = _Running(request, request.output - made)

    def _decode(self) -> None:
        append = self.allocator.append
        for request_id, running in list(self.running.items()):
            while request_id in self.running:
                try:
                    append(request_id)
                except MemoryError:
                    self._preempt_last()
                else:
                    running.left -= 1
                    break

    def _preempt_last(self) -> None:
        request_id, running = self.running.popitem()
        self.allocator.release(request_id)
        self.waiting.appendleft((running.request, running.request.output - running.left))
        self.preempted += 1

    def _measure(self, account: Account) -> None:
        self.counted_steps += 1
        self.batch_sum += len(self.running)
        self.held_sum += account.tokens / account.allocated if account.allocated else 0.0
        self.sums = [total + part for total, part in zip(self.sums, account, strict=True)]


def run(
    workload: Workload,
    allocator: Allocator,
    *,
    step_seconds: float = 0.05,
    progress: Progress | None = None,
) -> Result:
    """Run the whole workload. `progress(done, total)` is called whenever requests have left.

    The cost grows with the number of tokens, whatever the batch is.
    """
    simulation = Simulation(workload, allocator, step_seconds=step_seconds)
    total, told = len(workload.requests), 0
    while not simulation.done:
        simulation.step()
        left = simulation.finished + simulation.refused
        if progress is not None and left > told:
            told = left
            progress(left, total)
    return simulation.result()
