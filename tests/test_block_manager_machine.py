"""Random operations on the block manager against the dict oracle: over 2,000 sequences of up to 60 steps."""

from __future__ import annotations

from contextlib import suppress

import pytest
from block_oracle import Contents, DictManager, Refused
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kvlab import BlockCopy, BlockManager, Growth, OutOfBlocks

IDS = [f"r{i}" for i in range(5)]
ids = st.sampled_from(IDS)
# Tokens are bits of one drawn number: few draws, and prompts that often begin alike.
prompts = st.builds(
    lambda count, bits: [bits >> i & 1 for i in range(count)], st.integers(1, 20), st.integers(0, 2**20 - 1)
)
batches = st.dictionaries(ids, prompts, min_size=1, max_size=4)


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
    caching = False

    @initialize(
        num_blocks=st.integers(2, 24), block_size=st.sampled_from([1, 2, 3, 4, 16]), null_block=st.booleans()
    )
    def start(self, num_blocks: int, block_size: int, null_block: bool):
        self.taken: dict[int, int] = {}
        self.evicted: list[int] = []
        self.manager = BlockManager(
            num_blocks,
            block_size,
            prefix_caching=self.caching,
            reuse=self.reuse,
            null_block=null_block,
            on_event=self.hear,
        )
        self.usable = num_blocks - null_block
        self.oracle = DictManager(num_blocks, block_size, self.reuse, null_block, self.caching)
        self.contents = Contents(block_size, self.caching)

    def hear(self, event):
        change = {"allocate": 1, "free": -1}.get(event.kind, 0)
        self.taken[event.block] = self.taken.get(event.block, 0) + change
        if event.kind == "evict":
            self.evicted.append(event.block)

    def refused(self, call, error) -> BaseException:
        """The call raises, and not a single thing is different afterwards."""
        before = books(self.manager)
        with pytest.raises(error) as raised:
            call()
        assert books(self.manager) == before
        return raised.value

    def grow(self, batch, call):
        """`call` gives growths by request: what the oracle gives, or it is refused as the oracle refuses."""
        free, can_append = self.manager.num_free, self.manager.can_append(batch)
        try:
            expected = self.oracle.grow(batch)
            assert can_append
        except Refused as refused:
            assert not can_append
            error = self.refused(call, OutOfBlocks)
            assert (error.needed, error.free, error.total) == (refused.needed, free, self.usable)
            return
        got = call()
        for who, growth in got.items():
            assert ([tuple(slot) for slot in growth.slots], growth.cached) == expected[who]
            copies = [(s.copied_from, s.block, s.offset) for s in growth.slots if s.copied_from is not None]
            assert growth.copies == copies
            self.contents.copy(copies)
            self.contents.write(who, growth.slots, batch[who], growth.cached)

    def everyone(self, token) -> dict:
        """One token for each live request: what a decode step asks for."""
        return {who: [token] for who in self.manager.request_ids()}

    @rule(who=ids, token=st.integers(0, 1))
    def append_slot(self, who, token):
        def step():
            slot = self.manager.append_slot(who, token)
            copied = slot.copied_from is not None
            return {who: Growth([slot], [BlockCopy(slot.copied_from, *slot[:2])] if copied else [])}

        self.grow({who: [token]}, step)

    @rule(who=ids, tokens=prompts)
    def append(self, who, tokens):
        self.grow({who: tokens}, lambda: {who: self.manager.append(who, tokens)})

    @rule(batch=batches, decode=st.booleans())
    def reserve_and_commit(self, batch, decode):
        batch = (decode and self.everyone(1)) or batch

        def step():
            lengths = {who: self.manager.length(who) for who in self.manager.request_ids()}
            with self.manager.reserve(batch) as reservation:
                copies = [copy for growth in reservation.values() for copy in growth.copies]
                assert reservation.copies == copies
                self.manager.check()
                assert lengths == {who: self.manager.length(who) for who in lengths}
            return reservation

        self.grow(batch, step)

    @rule(batch=batches, decode=st.booleans())
    def reserve_and_fail(self, batch, decode):
        """A worker dies after scribbling into the reserved slots: everything is as it was."""
        batch = (decode and self.everyone(1)) or batch
        before = books(self.manager)
        with suppress(OutOfBlocks), pytest.raises(WorkerDied), self.manager.reserve(batch) as reservation:
            self.oracle.lose_content(batch)
            self.contents.copy(reservation.copies)
            for growth in reservation.values():
                self.contents.scribble(growth.slots[growth.cached :])
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
            self.contents.fork(parent, child)

    @rule(who=ids)
    def release(self, who):
        if who not in self.oracle.tables:
            assert who in str(self.refused(lambda: self.manager.release(who), KeyError))
            return
        self.manager.release(who)
        self.oracle.release(who)
        self.contents.release(who)

    @rule(who=ids, position=st.integers(-3, 70))
    def translate(self, who, position):
        if who not in self.oracle.tables:
            self.refused(lambda: self.manager.translate(who, position), KeyError)
        elif 0 <= position < self.oracle.lengths[who]:
            slot = self.manager.translate(who, position)
            assert self.contents.slots[slot.block, slot.offset] == self.contents.expected[who][position]
        else:
            self.refused(lambda: self.manager.translate(who, position), IndexError)

    @invariant()
    def agrees(self):
        self.manager.check()
        tables, lengths, free, counts, rows = books(self.manager)
        assert (tables, lengths, free) == self.oracle.state()
        assert self.evicted == self.oracle.evicted
        assert self.manager.num_free + self.manager.num_allocated == self.usable
        assert counts == [self.oracle.count(block) for block in range(len(counts))]
        assert {block for block, on in self.taken.items() if on} == {b for b, c in enumerate(counts) if c}
        for row, table in zip(rows, tables.values(), strict=True):
            assert row == table + [-1] * (len(row) - len(table))
        for who, table in tables.items():
            assert self.contents.read(table, lengths[who]) == self.contents.expected[who]


class LruMachine(Machine):
    reuse = "lru"


class OverlappingReservations(RuleBasedStateMachine):
    """Steps that overlap with other requests' growth and release: no token is lost, no count goes wrong."""

    @initialize(
        num_blocks=st.integers(6, 30), block_size=st.sampled_from([1, 2, 3, 4]), caching=st.booleans()
    )
    def start(self, num_blocks, block_size, caching):
        self.manager = BlockManager(num_blocks, block_size, prefix_caching=caching)
        self.contents = Contents(block_size, caching)
        self.open = []

    @rule(batch=batches)
    def begin(self, batch):
        reserved = {who for reservation, _ in self.open for who in reservation}
        batch = {who: tokens for who, tokens in batch.items() if who not in reserved}
        with suppress(OutOfBlocks):
            reservation = self.manager.reserve(batch)
            self.contents.copy(reservation.copies)
            self.open.append((reservation, batch))

    @rule(commit=st.booleans(), first=st.booleans())
    def end(self, commit, first):
        if not self.open:
            return
        reservation, batch = self.open.pop(0 if first else -1)
        for who, growth in reservation.items():
            if commit:
                self.contents.write(who, growth.slots, batch[who], growth.cached)
            else:
                self.contents.scribble(growth.slots[growth.cached :])
        (reservation.commit if commit else reservation.roll_back)()

    @rule(who=ids, tokens=prompts)
    def append(self, who, tokens):
        with suppress(OutOfBlocks, ValueError):
            growth = self.manager.append(who, tokens)
            self.contents.copy(growth.copies)
            self.contents.write(who, growth.slots, tokens, growth.cached)

    @rule(parent=ids, child=ids)
    def fork(self, parent, child):
        with suppress(KeyError, ValueError):
            self.manager.fork(parent, child)
            self.contents.fork(parent, child)

    @rule(who=ids)
    def release(self, who):
        with suppress(KeyError, ValueError):
            self.manager.release(who)
            self.contents.release(who)

    @invariant()
    def nothing_is_lost(self):
        self.manager.check()
        for who in self.manager.request_ids():
            length = self.manager.length(who)
            read = self.contents.read(self.manager.block_table(who), length)
            assert read == self.contents.expected.get(who, [])[:length]


many = settings(
    max_examples=1050, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
TestFifo = Machine.TestCase
TestFifo.settings = many
TestLru = LruMachine.TestCase
TestLru.settings = many
TestOverlap = OverlappingReservations.TestCase
TestOverlap.settings = settings(many, max_examples=200)
