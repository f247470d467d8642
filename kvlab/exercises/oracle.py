"""One operation on a learner's manager, judged against plain dicts that say what should have happened.

The oracle asks only for the smallest manager's interface. It leaves the order of released blocks open, but a
block that is taken must be the next on the manager's own free list.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from kvlab.block_pool import OutOfBlocks
from kvlab.exercises.guard import describe
from kvlab.exercises.trial import plain, show
from kvlab.script import Operation
from kvlab.state import State, snapshot


class Wrong(Exception):
    """The message says what was expected, why, and what came back."""


class Oracle:
    """The books of a manager as they should be, request by request."""

    def __init__(self, manager: Any):
        self.manager = manager
        self.state = self._look([])
        self._expect_free(sorted(self.state.free), list(range(manager.num_blocks)), "the pool is new")

    def step(self, operation: Operation) -> None:
        """Carry the operation out and compare; Wrong at the first difference."""
        if operation.kind == "append":
            self._append(operation)
        elif operation.kind == "release":
            self._release(operation)
        else:
            self._fork(operation)
        self._expect_counts()

    def _look(self, live: list) -> State:
        return snapshot(self.manager, live)

    def _call(self, name: str, *args: Any) -> Any:
        try:
            return getattr(self.manager, name)(*args)
        except OutOfBlocks:
            raise
        except Exception as error:
            shown = ", ".join(map(repr, args))
            raise Wrong(f"`{name}({shown})` should work, but it raised {describe(error)}") from None

    def _append(self, operation: Operation) -> None:
        who, count, before = operation.request_id, operation.count, self.state
        batch = count > 1 and hasattr(self.manager, "append")
        table, length = list(before.tables.get(who, ())), before.lengths.get(who, 0)
        shared = length % before.block_size > 0 and len(before.holders(table[-1])) > 1
        needed = -(-(length + count) // before.block_size) - len(table) + shared
        fits = needed <= len(before.free)
        call = f"`append({who!r}, {count})`" if batch else f"`append_slot({who!r})`"
        try:
            got = [self._call("append", who, count)] if batch else [self._call("append_slot", who)]
        except OutOfBlocks as refusal:
            self._refused(refusal, call, needed, fits)
            return
        if not fits:
            raise Wrong(
                f"{call} should raise OutOfBlocks, because it needs {needed} more and {len(before.free)} are "
                "free; "
                f"it returned {show(got[0])}"
            )
        new = list(before.free[:needed])
        due = (table[:-1] if shared else table) + new
        slots = [(due[t // before.block_size], t % before.block_size) for t in range(length, length + count)]
        self._compare_slots(call, got[0], slots, batch, length)
        if shared:
            self._expect_copy(call, got[0], batch, table[-1], length)
        self.state = self._look([*dict.fromkeys([*before.tables, who])])
        why = f"{who} now has {length + count} tokens" + (", and its last block was shared" if shared else "")
        self._expect_tables({**before.tables, who: tuple(due)}, {**before.lengths, who: length + count}, why)
        self._expect_free(
            self.state.free, before.free[needed:], f"{call} needs {needed or 'no'} new block(s)"
        )

    def _refused(self, refusal: OutOfBlocks, call: str, needed: int, fits: bool) -> None:
        before = self.state
        if fits:
            raise Wrong(
                f"{call} should work, because it needs {needed} new block(s) and {len(before.free)} are "
                "free; "
                f"it raised {describe(refusal)}"
            )
        self.state = self._look(list(before.tables))
        if self.state != before:
            raise Wrong(
                f"{call} was refused, so nothing may change; tables {_dict(before.tables)}, lengths "
                f"{dict(before.lengths)}, free {list(before.free)} became {_dict(self.state.tables)}, "
                f"{dict(self.state.lengths)}, {list(self.state.free)}"
            )
        stayed = set(_ids(self.manager)) - set(before.tables)
        if stayed:
            raise Wrong(f"{call} was refused, so nothing may change; yet request {stayed.pop()!r} now exists")
        figures = (refusal.needed, refusal.free, refusal.total)
        if figures != (needed, len(before.free), before.num_blocks):
            raise Wrong(
                f"{call} should say needed={needed}, free={len(before.free)}, total={before.num_blocks}; it "
                "said "
                f"needed={figures[0]}, free={figures[1]}, total={figures[2]}"
            )

    def _release(self, operation: Operation) -> None:
        who, before = operation.request_id, self.state
        freed = [block for block in before.tables[who] if before.holders(block) == [who]]
        self._call("release", who)
        self.state = self._look([request_id for request_id in before.tables if request_id != who])
        if who in _ids(self.manager):
            raise Wrong(f"`release({who!r})` should forget {who}, yet `request_ids()` still lists it")
        rest = {key: value for key, value in before.tables.items() if key != who}
        self._expect_tables(rest, {key: before.lengths[key] for key in rest}, f"only {who} was released")
        due, now = Counter([*before.free, *freed]), Counter(self.state.free)
        if due != now:
            raise Wrong(
                f"after `release({who!r})` the free list should hold {sorted(due.elements())}, because "
                f"{who}'s blocks {freed} come back once each; it holds {sorted(now.elements())}"
            )

    def _fork(self, operation: Operation) -> None:
        parent, child, before = operation.request_id, operation.other, self.state
        self._call("fork", parent, child)
        self.state = self._look([*before.tables, child])
        self._expect_tables(
            {**before.tables, child: before.tables[parent]},
            {**before.lengths, child: before.lengths[parent]},
            f"{child} starts with every block of {parent}",
        )
        self._expect_free(self.state.free, before.free, "a fork takes no block")

    def _compare_slots(self, call: str, got: Any, slots: list, batch: bool, length: int) -> None:
        came = plain(getattr(got, "slots", got) if batch else [got])
        came = (
            tuple(slot[:2] if isinstance(slot, tuple) else slot for slot in came)
            if came is not None
            else None
        )
        if came != tuple(slots):
            due = slots if batch else slots[0]
            why = f"token {length} is number {length % self.state.block_size} of its block"
            raise Wrong(f"{call} should return {show(due)}, because {why}; it returned {show(got)}")

    def _expect_copy(self, call: str, got: Any, batch: bool, source: int, length: int) -> None:
        first = getattr(got, "slots", got)[0] if batch else got
        named = first[2] if isinstance(first, tuple) and len(first) > 2 else None
        if named != source:
            raise Wrong(
                f"{call} should say copied_from={source}, because the {length % self.state.block_size} "
                "tokens "
                f"before it are there; it said {show(named)}"
            )

    def _expect_counts(self) -> None:
        for block, count in enumerate(self.state.ref_counts or ()):
            holders = self.state.holders(block)
            if count != len(holders):
                raise Wrong(
                    f"the count of block {block} should be {len(holders)}, because it is in the table of "
                    f"{' and '.join(map(str, holders)) or 'nobody'}; it is {show(count)}"
                )

    def _expect_tables(self, tables: dict, lengths: dict, why: str) -> None:
        if dict(self.state.lengths) != dict(lengths):
            raise Wrong(
                f"lengths should be {dict(lengths)}, because {why}; they are {dict(self.state.lengths)}"
            )
        if dict(self.state.tables) != dict(tables):
            raise Wrong(
                f"tables should be {_dict(tables)}, because {why}; they are {_dict(self.state.tables)}"
            )

    @staticmethod
    def _expect_free(now: Any, due: Any, why: str) -> None:
        if list(now) != list(due):
            raise Wrong(f"the free list should be {list(due)}, because {why}; it is {list(now)}")


def _ids(manager: Any) -> list:
    return list(getattr(manager, "request_ids", list)())


def _dict(tables: Any) -> dict:
    return {request_id: list(table) for request_id, table in tables.items()}
