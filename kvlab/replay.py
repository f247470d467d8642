"""Replay a recorded engine trace on our block manager and compare every line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvlab.block_manager import BlockManager
from kvlab.block_pool import Event, OutOfBlocks
from kvlab.prefix_cache import ExtraKeys


class TraceError(ValueError):
    """The file is not a trace, or stops making sense; the message names the line and what is wrong."""


@dataclass(frozen=True)
class Line:
    """One operation of a trace: what the engine reported and what our manager did, field by field."""

    number: int
    operation: dict[str, Any]
    engine: dict[str, Any]
    ours: dict[str, Any]

    @property
    def differing(self) -> list[str]:
        """The fields in which the two disagree."""
        return [field for field, value in self.engine.items() if self.ours.get(field) != value]


def read_trace(path: str | Path) -> list[dict[str, Any]]:
    """The operations of a trace file: JSON lines, the first one `init`.

    Raises:
        TraceError: the line that is not JSON, or a file without an `init`.
    """
    operations = []
    with open(path, "rb") as file:
        for number, text in enumerate(file, start=1):
            if not text.strip():
                continue
            try:
                operation = json.loads(text)
            except ValueError as error:
                raise TraceError(f"line {number} is not JSON: {error}") from None
            if not isinstance(operation, dict) or "op" not in operation:
                raise TraceError(f"line {number} has no 'op': a trace holds one operation a line")
            operations.append(operation)
    if not operations or operations[0]["op"] != "init":
        raise TraceError("the first line must be the 'init' operation with num_blocks and block_size")
    return operations


def replay(operations: list[dict[str, Any]]) -> Iterator[Line]:
    """Run each operation on a manager with prefix caching and a null block, yielding both sides of it."""
    try:
        replayer = _Replayer(operations[0])
    except (KeyError, ValueError) as error:
        raise TraceError(f"line 1: {error.args[0]}") from None
    for number, operation in enumerate(operations[1:], start=2):
        run = getattr(replayer, f"run_{operation['op']}", None)
        if run is None:
            raise TraceError(f"line {number}: unknown operation {operation['op']!r}")
        try:
            ours = run(operation)
        except KeyError as error:
            raise TraceError(f"line {number}: {operation['op']} lacks or misnames {error.args[0]}") from None
        except (TypeError, ValueError) as error:
            raise TraceError(f"line {number}: {error}") from None
        ours |= replayer.books()
        engine = {field: operation[field] for field in ours if field in operation}
        yield Line(number, operation, engine, ours)


class _Replayer:
    def __init__(self, init: dict[str, Any]):
        self.evicted: list[int] = []
        self.manager = BlockManager(
            init["num_blocks"], init["block_size"], prefix_caching=True, null_block=True, on_event=self.hear
        )

    def hear(self, event: Event) -> None:
        if event.kind == "evict":
            self.evicted.append(event.block)

    def books(self) -> dict[str, Any]:
        evicted, self.evicted = self.evicted, []
        return {"evicted": evicted, "free": self.manager.num_free, "free_q": self.manager.free_order()}

    def run_new(self, operation: dict[str, Any]) -> dict[str, Any]:
        rid, tokens = operation["rid"], operation["tokens"]
        try:
            growth = self.manager.append(rid, tokens)
        except OutOfBlocks:
            # A refused request has no blocks; the engine still reports what it would have hit.
            found = self.manager.prefix_cache.longest_prefix(tokens, ExtraKeys())
            return {"ok": False, "hit_tokens": len(found) * self.manager.block_size}
        table = self.manager.block_table(rid)
        hit_blocks = growth.cached // self.manager.block_size
        return {"ok": True, "hit_tokens": growth.cached, "blocks": table, "new": table[hit_blocks:]}

    def run_append(self, operation: dict[str, Any]) -> dict[str, Any]:
        rid = operation["rid"]
        held = len(self.manager.block_table(rid))
        try:
            self.manager.append_slot(rid, operation["token"])
        except OutOfBlocks:
            # The engine preempts the request that could not grow.
            self.manager.release(rid)
            return {"ok": False}
        table = self.manager.block_table(rid)
        return {"ok": True, "blocks": table, "new": table[held:]}

    def run_free(self, operation: dict[str, Any]) -> dict[str, Any]:
        self.manager.release(operation["rid"])
        return {}

    def run_free_all(self, operation: dict[str, Any]) -> dict[str, Any]:
        for rid in sorted(self.manager.request_ids(), key=str):
            self.manager.release(rid)
        self.manager.reset_prefix_cache()
        return {"reset_ok": True}
