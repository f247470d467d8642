"""Random operations on the block manager against the dict oracle: over 2,000 sequences of up to 60 steps."""

from __future__ import annotations

from contextlib import suppress

import pytest
from block_oracle import Contents, DictManager, Refused
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kvlab import BlockManager, OutOfBlocks

IDS = [f"r{i}" for i in range(6)]
ids = st.sampled_from(IDS)
batches = st.dictionaries(ids, st.integers(1, 9), min_size=1, max_size=4)


class WorkerDied(Exception):
    pass


def books(manager: BlockManager) -> tuple:
    live = manager.request_ids()
    return (
        {who: manager.block_table(who) for who in live},
        {who: manager.length(who) for who in live},
        manager.free_order(),
        [manager.ref_count(block) for block in range(manager.num_blocks)],
        manager.block_table_array(live).tolist(),
    )


class Machine(RuleBasedStateMachine):
    reuse = "fifo"

    @initialize(
        num_blocks=st.integers(2, 24), block_size=st.sampled_from([1, 2, 3, 4, 16]), null_block=st.booleans()
    )
    def start(self, num_blocks: int, block_size: int, null_block: bool):
        self.events: dict[int, int] = {}
        self.manager = BlockManager(
            num_blocks, block_size, reuse=self.reuse, null_block=null_block, on_event=self.hear
        )
        self.usable = num_blocks - null_block
        self.oracle = DictManager(num_blocks, block_size, self.reuse, null_block)
        self.contents = Contents(block_size)

    def hear(self, event):
        change = {"allocate": 1, "free": -1}.get(event.kind, 0)
        self.events[event.block] = self.events.get(event.block, 0) + change

    def refused(self, call, error) -> BaseException:
        """The call raises, and not a single thing is different afterwards."""
        before = books(self.manager)
        with pytest.raises(error) as raised:
            call()
        assert books(self.manager) == before
        return raised.value

    def grow(self, batch, call, slots_of):
        """`call` on the manager must give what the oracle gives, or be refused as it is."""
        try:
            expected = self.oracle.grow(batch)
        except Refused as refused:
            error = self.refused(call, OutOfBlocks)
            assert (error.needed, error.free, error.total) == (
                refused.needed,
                self.manager.num_free,
                self.usable,
            )
            return
        got = slots_of(call())
        assert {who: [tuple(slot) for slot in slots] for who, slots in got.items()} == expected
        for who, slots in got.items():
            copies = [(s.copied_from, s.block, s.offset) for s in slots if s.copied_from is not None]
            self.contents.copy(copies)
            self.contents.write(who, slots)

    @rule(who=ids)
    def append_slot(self, who):
        self.grow({who: 1}, lambda: self.manager.append_slot(who), lambda slot: {who: [slot]})

    @rule(who=ids, count=st.integers(1, 20))
    def append(self, who, count):
        self.grow({who: count}, lambda: self.manager.append(who, count), lambda growth: {who: growth.slots})

    @rule(batch=batches)
    def reserve_and_commit(self, batch):
        def step():
            lengths = {who: self.manager.length(who) for who in self.manager.request_ids()}
            with self.manager.reserve(batch) as reservation:
                copies = [copy for growth in reservation.values() for copy in growth.copies]
                assert reservation.copies == copies
                self.manager.check()
                assert lengths == {who: self.manager.length(who) for who in lengths}
            return reservation

        assert self.manager.can_append(batch) == (self.oracle.needed(batch) <= self.manager.num_free)
        self.grow(batch, step, lambda r: {who: growth.slots for who, growth in r.items()})

    @rule(batch=batches)
    def reserve_and_fail(self, batch):
        """A worker dies after scribbling into the reserved slots: everything is as it was."""
        before = books(self.manager)
        with suppress(OutOfBlocks), pytest.raises(WorkerDied), self.manager.reserve(batch) as reservation:
            self.contents.copy(reservation.copies)
            for growth in reservation.values():
                self.contents.scribble(growth.slots)
            for who in batch:
                for change in (self.manager.release, self.manager.append_slot):
                    with pytest.raises(ValueError, match="reservation"):
                        change(who)
            raise WorkerDied
        assert books(self.manager) == before

    @rule(parent=ids, child=ids)
    def fork(self, parent, child):
        if parent not in self.oracle.tables:
            assert parent in str(self.refused(lambda: self.manager.fork(parent, child), KeyError))
        elif child in self.oracle.tables:
            assert child in str(self.refused(lambda: self.manager.fork(parent, child), ValueError))
        else:
            self.manager.fork(parent, child)
            self.oracle.fork(parent, child)
            self.contents.tokens[child] = list(self.contents.tokens[parent])

    @rule(who=ids)
    def release(self, who):
        if who not in self.oracle.tables:
            assert who in str(self.refused(lambda: self.manager.release(who), KeyError))
            return
        self.manager.release(who)
        self.oracle.release(who)
        del self.contents.tokens[who]

    @rule(who=ids, position=st.integers(-3, 70))
    def translate(self, who, position):
        if who not in self.oracle.tables:
            self.refused(lambda: self.manager.translate(who, position), KeyError)
        elif 0 <= position < self.oracle.lengths[who]:
            slot = self.manager.translate(who, position)
            assert self.contents.slots[slot.block, slot.offset] == self.contents.tokens[who][position]
        else:
            self.refused(lambda: self.manager.translate(who, position), IndexError)

    @invariant()
    def agrees(self):
        self.manager.check()
        tables, lengths, free, counts, rows = books(self.manager)
        assert (tables, lengths, free) == self.oracle.state()
        assert self.manager.num_free + self.manager.num_allocated == self.usable
        assert counts == [self.oracle.count(block) for block in range(len(counts))]
        assert {block for block, on in self.events.items() if on} == {b for b, c in enumerate(counts) if c}
        for row, table in zip(rows, tables.values(), strict=True):
            assert row == table + [-1] * (len(row) - len(table))
        for who, table in tables.items():
            assert self.contents.read(table, lengths[who]) == self.contents.tokens[who]


class LruMachine(Machine):
    reuse = "lru"


class OverlappingReservations(RuleBasedStateMachine):
    """Steps that overlap with other requests' growth and release: no token is lost, no count goes wrong."""

    @initialize(num_blocks=st.integers(6, 30), block_size=st.sampled_from([1, 2, 3, 4]))
    def start(self, num_blocks, block_size):
        self.manager = BlockManager(num_blocks, block_size)
        self.contents = Contents(block_size)
        self.open = []

    @rule(batch=batches)
    def begin(self, batch):
        reserved = {who for reservation in self.open for who in reservation}
        with suppress(OutOfBlocks):
            reservation = self.manager.reserve({who: n for who, n in batch.items() if who not in reserved})
            self.contents.copy(reservation.copies)
            self.open.append(reservation)

    @rule(commit=st.booleans(), first=st.booleans())
    def end(self, commit, first):
        if not self.open:
            return
        reservation = self.open.pop(0 if first else -1)
        for who, growth in reservation.items():
            (self.contents.write(who, growth.slots) if commit else self.contents.scribble(growth.slots))
        (reservation.commit if commit else reservation.roll_back)()

    @rule(who=ids, count=st.integers(1, 5))
    def append(self, who, count):
        with suppress(OutOfBlocks, ValueError):
            growth = self.manager.append(who, count)
            self.contents.copy(growth.copies)
            self.contents.write(who, growth.slots)

    @rule(parent=ids, child=ids)
    def fork(self, parent, child):
        with suppress(KeyError, ValueError):
            self.manager.fork(parent, child)
            self.contents.tokens[child] = list(self.contents.tokens[parent])

    @rule(who=ids)
    def release(self, who):
        with suppress(KeyError, ValueError):
            self.manager.release(who)
            del self.contents.tokens[who]

    @invariant()
    def nothing_is_lost(self):
        self.manager.check()
        for who in self.manager.request_ids():
            length = self.manager.length(who)
            read = self.contents.read(self.manager.block_table(who), length)
            assert read == self.contents.tokens.get(who, [])[:length]


many = settings(
    max_examples=1050, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
TestFifo = Machine.TestCase
TestFifo.settings = many
TestLru = LruMachine.TestCase
TestLru.settings = many
TestOverlap = OverlappingReservations.TestCase
TestOverlap.settings = settings(many, max_examples=200)
