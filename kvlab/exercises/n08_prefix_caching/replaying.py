"""Replay the engine's recorded trace on a learner's pool, line by line, up to the first difference."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from kvlab.block_pool import OutOfBlocks
from kvlab.exercises import guard
from kvlab.exercises.n08_prefix_caching.pool import PrefixBlocks
from kvlab.replay import Line, read_trace

TRACE = Path(__file__).with_name("trace.jsonl")
SECONDS = 5.0


@cache
def operations() -> tuple[dict[str, Any], ...]:
    """The recorded operations; the first is `init`."""
    return tuple(read_trace(TRACE))


def replay(make: Callable[[int, int], PrefixBlocks]) -> Iterator[Line]:
    """Both sides of each operation after `init`; what the learner's code raises reaches the caller."""
    first, *rest = operations()
    pool = make(first["num_blocks"], first["block_size"])
    for number, operation in enumerate(rest, start=2):
        evicted = len(pool.evicted)
        ours = _RUN[operation["op"]](pool, operation)
        ours |= {"evicted": pool.evicted[evicted:], "free": len(pool.free), "free_q": list(pool.free)}
        engine = {field: operation[field] for field in ours if field in operation}
        yield Line(number, operation, engine, ours)


def _new(pool: PrefixBlocks, operation: dict[str, Any]) -> dict[str, Any]:
    rid, tokens = operation["rid"], operation["tokens"]
    try:
        hit = pool.new(rid, tokens)
    except OutOfBlocks:
        # A refused request has no blocks; the engine still reports what it would have hit.
        return {
            "ok": False,
            "hit_tokens": len(pool.longest_prefix(tokens, pool.chain(tokens))) * pool.block_size,
        }
    table = list(pool.tables[rid])
    return {"ok": True, "hit_tokens": hit, "blocks": table, "new": table[hit // pool.block_size :]}


def _append(pool: PrefixBlocks, operation: dict[str, Any]) -> dict[str, Any]:
    rid = operation["rid"]
    held = len(pool.tables[rid])
    try:
        pool.grow(rid, operation["token"])
    except OutOfBlocks:
        # The engine preempts the request that could not grow.
        pool.release(rid)
        return {"ok": False}
    table = list(pool.tables[rid])
    return {"ok": True, "blocks": table, "new": table[held:]}


def _free(pool: PrefixBlocks, operation: dict[str, Any]) -> dict[str, Any]:
    pool.release(operation["rid"])
    return {}


def _free_all(pool: PrefixBlocks, operation: dict[str, Any]) -> dict[str, Any]:
    for rid in sorted(pool.tables, key=str):
        pool.release(rid)
    return {}


_RUN = {"new": _new, "append": _append, "free": _free, "free_all": _free_all}


class Replay:
    """The whole replay under a time limit.

    lines: those that were equal.  different: the first that was not, or None.
    stopped: what the learner's code raised instead, as the end of a sentence, or None.
    """

    def __init__(self, make: Callable[[int, int], PrefixBlocks]):
        self.lines: list[Line] = []
        self.different: Line | None = None
        outcome = guard.run(self._go, make, seconds=SECONDS)
        self.stopped = None if outcome.ok else outcome.telling()

    def _go(self, make: Callable[[int, int], PrefixBlocks]) -> None:
        for line in replay(make):
            if line.differing:
                self.different = line
                return
            self.lines.append(line)

    @property
    def equal(self) -> bool:
        return self.different is None and self.stopped is None

    def telling(self) -> str:
        """One sentence: how far it came, and both sides of the first difference."""
        if self.equal:
            hits = sum(line.ours.get("hit_tokens", 0) for line in self.lines)
            evicted = sum(len(line.ours["evicted"]) for line in self.lines)
            done = f"all {len(self.lines)} operations are equal, queues too"
            return f"{done}: {hits} tokens hit, {evicted} blocks evicted."
        number = len(self.lines) + 2
        asked = _asked(operations()[number - 1])
        if self.different is None:
            return f"line {number}, {asked}: your code {self.stopped}."
        field = self.different.differing[0]
        return (
            f"line {number}, {asked}: expected {_FIELDS[field]} {self.different.engine[field]}, because "
            "that is what "
            f"the engine did; got {self.different.ours[field]}."
        )

    def __str__(self) -> str:
        """Every field of the first differing line, the engine's beside ours."""
        if self.different is None:
            return self.telling()
        line = self.different
        rows = [f"line {line.number}, {_asked(line.operation)}: the first difference", ""]
        for field, value in line.engine.items():
            mark = "≠" if field in line.differing else " "
            rows += _row(f"{mark} {field:10} engine ", value)
            rows += _row(f"  {'':10} yours  ", line.ours.get(field))
        return "\n".join(rows)


def _row(head: str, value: object) -> list[str]:
    return textwrap.wrap(str(value), 90, initial_indent=head, subsequent_indent=" " * len(head))


_FIELDS = {
    "ok": "the answer to the request",
    "hit_tokens": "a hit of",
    "blocks": "the table",
    "new": "the new blocks",
    "evicted": "evicted blocks",
    "free": "the number of free blocks",
    "free_q": "the free queue",
}


def _asked(operation: dict[str, Any]) -> str:
    match operation["op"]:
        case "new":
            return f"new {operation['rid']} with {len(operation['tokens'])} tokens"
        case "append":
            return f"append to {operation['rid']}"
        case "free":
            return f"free {operation['rid']}"
    return "free all"
