"""Search for the shortest sequence of operations that a learner's manager gets wrong.

First every short sequence on a tiny pool, shortest first, so that what it finds is the shortest there is;
then long random ones, which hypothesis shrinks. Each sequence runs on a new manager under guard.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kvlab.exercises import guard
from kvlab.exercises.oracle import Oracle, Wrong
from kvlab.script import Operation

Factory = Callable[[int, int], Any]
POOLS = ((2, 2), (1, 1), (3, 2))  # (num_blocks, block_size) of the short sequences
SHORT, LONG, EXAMPLES = 4, 40, 120
COUNTS = (1, 2, 3, 5)  # tokens of one append in the long ones
SECONDS = 1.0  # for one chunk of sequences
CHUNK = 100
HANGS = 4  # sequences that may run out of time before the search settles for what it has


@dataclass(frozen=True)
class Finding:
    """A failing sequence on a new manager of this size, as script text, and what went wrong at its end."""

    num_blocks: int
    block_size: int
    script: str
    sentence: str

    def telling(self) -> str:
        pool = f"{self.num_blocks} block{'s' * (self.num_blocks != 1)} of {self.block_size}"
        done = f"after `{self.script}`" if self.script else "before the first operation"
        return f"with {pool}, {done}: {self.sentence}."


class Search:
    """Runs sequences on managers made by `factory(num_blocks, block_size)`.

    batch, fork: whether the manager has `append` for several tokens, and `fork`.
    """

    def __init__(self, factory: Factory, *, batch: bool = True, fork: bool = False):
        self.factory, self.batch, self.fork = factory, batch, fork
        self._known: dict[tuple, Finding | None] = {}
        self._hangs = 0

    def shortest(self) -> Finding | None:
        """The shortest failing sequence that the search found; None when every sequence was right."""
        for length in range(SHORT + 1):
            cases = list(itertools.product(POOLS, self._all(length)))
            for start in range(0, len(cases), CHUNK):
                finding = self._first(cases[start : start + CHUNK])
                if finding is not None:
                    return finding
        return self._long()

    def run(self, pool: tuple[int, int], sequence: Sequence[Operation]) -> Finding | None:
        """What is wrong with this sequence, cut after the operation that shows it."""
        key = (pool, tuple(sequence))
        if key not in self._known:
            self._known[key] = None if self._hangs >= HANGS else self._first([key])
        return self._known[key]

    def _first(self, cases: Sequence[tuple[tuple[int, int], Sequence[Operation]]]) -> Finding | None:
        """The first of the cases that fails, all run under one guard."""
        now: list[Any] = [POOLS[0], []]  # the pool in hand, and the operations done on it

        def carry_out() -> None:
            for pool, sequence in cases:
                now[:] = pool, []
                oracle = Oracle(self.factory(*pool))
                for operation in sequence:
                    if _possible(operation, oracle.state.tables):
                        now[1].append(operation)
                        oracle.step(operation)

        outcome = guard.run(carry_out, seconds=SECONDS)
        if outcome.ok:
            return None
        self._hangs += outcome.timed_out
        script = "; ".join(_text(operation) for operation in now[1])
        sentence = str(outcome.error) if isinstance(outcome.error, Wrong) else f"it {outcome.telling()}"
        return Finding(*now[0], script, sentence)

    def _all(self, length: int) -> Iterator[tuple[Operation, ...]]:
        """Every sequence of this length for requests A and B, in which A comes first."""
        for sequence in itertools.product(self._alphabet("AB", (1, 3)), repeat=length):
            if not sequence or sequence[0].request_id == "A":
                yield sequence

    def _alphabet(self, names: str, counts: Sequence[int]) -> list[Operation]:
        counts = [count for count in counts if count == 1 or self.batch]
        operations = [Operation("append", name, count) for count in counts for name in names]
        operations += [Operation("release", name) for name in names]
        if self.fork:
            operations += [Operation("fork", a, other=b) for a, b in itertools.permutations(names, 2)]
        return operations

    def _long(self) -> Finding | None:
        import hypothesis
        from hypothesis import strategies as st
        from hypothesis.configuration import set_hypothesis_home_dir
        from hypothesis.errors import NoSuchExample

        set_hypothesis_home_dir(tempfile.gettempdir())  # nothing lands beside the notebook
        pools = st.tuples(st.integers(1, 6), st.integers(1, 4))
        alphabet = st.sampled_from(self._alphabet("ABC", COUNTS))
        # Of a length drawn first: lists of their own accord stay at about five operations.
        operations = st.integers(0, LONG).flatmap(lambda n: st.lists(alphabet, min_size=n, max_size=n))
        settings = hypothesis.settings(
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        try:
            pool, sequence = hypothesis.find(
                st.tuples(pools, operations), lambda drawn: self.run(*drawn) is not None, settings=settings
            )
        except NoSuchExample:
            return None
        return self._shorter(pool, tuple(sequence))

    def _shorter(self, pool: tuple[int, int], sequence: tuple[Operation, ...]) -> Finding | None:
        """What shrinking left, made shorter: all short sequences on this pool, then leave out and join."""
        alphabet = self._alphabet("ABC", COUNTS)
        for length in range(1, min(len(sequence), 3)):
            for shorter in itertools.product(alphabet, repeat=length):
                if self.run(pool, shorter) is not None:
                    return self.run(pool, shorter)
        tried = (shorter for shorter in _simpler(sequence, self.batch) if self.run(pool, shorter) is not None)
        shorter = next(tried, None)
        return self.run(pool, sequence) if shorter is None else self._shorter(pool, shorter)


def _simpler(sequence: tuple[Operation, ...], batch: bool) -> Iterator[tuple[Operation, ...]]:
    """The sequence with one operation left out, or with two appends of one request joined."""
    for number in reversed(range(len(sequence))):
        yield sequence[:number] + sequence[number + 1 :]
    for first, second in itertools.combinations(range(len(sequence)), 2) if batch else ():
        one, other = sequence[first], sequence[second]
        if one.kind == other.kind == "append" and one.request_id == other.request_id:
            joined = one._replace(count=one.count + other.count)
            yield (*sequence[:first], joined, *sequence[first + 1 : second], *sequence[second + 1 :])


def _possible(operation: Operation, tables: Any) -> bool:
    """Release and fork need a live request, a fork a new name; other sequences are not worth telling."""
    if operation.kind == "append":
        return True
    return operation.request_id in tables and operation.other not in tables


def _text(operation: Operation) -> str:
    if operation.kind == "append":
        return f"append {operation.request_id}" + (f" {operation.count}" if operation.count > 1 else "")
    return " ".join(filter(None, (operation.kind, operation.request_id, operation.other)))
