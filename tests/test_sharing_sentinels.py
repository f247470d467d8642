"""Sentinels over forks, beams, hits and evictions; and every planted sharing bug, caught and named."""

import random

import pytest
from sentinel_run import Run
from sharing_run import SharingRun

from kvlab import BlockCopy, BlockManager, InvariantError, OutOfBlocks
from kvlab.faults import SHARING_FAULTS, EarlyFree, LateCopy, LostDecrement, ShortCopy, UnfinishedHit

# -- a million right writes ---------------------------------------------------------------------------------

WRITES_PER_SIZE = 200_000
POOL_TOKENS = 12_000


class Beams:
    """A few groups of requests that grow together, fork and die, in a pool that is always short of blocks."""

    def __init__(self, run, randomness):
        self.run, self.randomness = run, randomness
        self.groups = []
        self.prompts = [
            [randomness.randrange(9) for _ in range(randomness.randrange(20, 200))] for _ in "12345"
        ]
        self.added = 0

    def some(self, count):
        return [self.randomness.randrange(9) for _ in range(count)]

    def make_room(self):
        """Some group that is not in this step goes."""
        group = self.groups.pop(self.randomness.randrange(len(self.groups)))
        for request_id in group:
            self.run.release(request_id)

    def act(self):
        randomness = self.randomness
        if not self.groups or randomness.random() < 0.12:
            name, self.added = f"p{self.added}", self.added + 1
            prompt = randomness.choice(self.prompts)
            cut = randomness.randrange(len(prompt) // 2, len(prompt) + 1)
            batch, group = {name: prompt[:cut] + self.some(randomness.randrange(1, 30))}, [name]
        else:
            group = randomness.choice(self.groups)
            self.groups.remove(group)
            width = randomness.choice([1, 2, 4, 6])
            group = self.run.beam_step(group, [randomness.choice(group) for _ in range(width)])
            length = randomness.choice([1, 1, 30, 120])
            batch = {request_id: self.some(length) for request_id in group}
        while True:
            try:
                self.run.step(batch)
                break
            except OutOfBlocks:
                self.make_room()
        self.groups.append(group)


@pytest.mark.parametrize("block_size", [1, 2, 3, 4, 16])
def test_a_million_writes_over_beams_hits_and_evictions_without_a_mismatch(block_size):
    """200,000 tokens at each of five block sizes; what a hit finds was written for the same tokens."""
    randomness = random.Random(block_size)
    manager = BlockManager(
        POOL_TOKENS // block_size, block_size, prefix_caching=True, null_block=block_size % 2 == 0
    )
    run = SharingRun(manager)
    beams, audits = Beams(run, randomness), 0
    while run.written < WRITES_PER_SIZE:
        beams.act()
        if run.written >= (audits + 1) * WRITES_PER_SIZE // 5:
            audits += 1
            manager.check()
            assert run.audit() == []
    assert run.forks > 300 and run.hits > 3_000 and manager.prefix_cache.stats.evictions > 1_000
    assert run.copies > 100 or block_size == 1
    # The audit was not blind: one lane changed is one mismatch for each table that holds the slot.
    holder = run.live()[-1]
    block, offset, _ = manager.translate(holder, manager.length(holder) - 1)
    run.cache.v[0, block, offset, 0, 7] = 11
    assert len(run.audit()) == sum(block in manager.block_table(r) for r in run.live())


# -- one step -----------------------------------------------------------------------------------------------


def one_step_that_reuses_the_source(manager, wrap=lambda cache: cache):
    """B = 4. In one step: A's fork C appends, A is released, B takes the block that C's copy comes from.

    The copies of the step are one call, before anything is written. Then a step that does nothing.
    """
    run = Run(manager, wrap=wrap)
    cache = run.writer.cache
    run.append("AAA")
    cache.copy([])
    run.fork("A", "C")
    slots = {"C": manager.append_slot("C")}
    run.release("A")
    slots["B"] = manager.append_slot("B")
    copies = [
        BlockCopy(s.copied_from, s.block, s.offset) for s in slots.values() if s.copied_from is not None
    ]
    cache.copy(copies)
    run.writer.write("C", 3, slots["C"])
    run.writer.write("B", 0, slots["B"])
    cache.copy([])
    return run, slots, copies


@pytest.mark.parametrize("caching", [False, True])
def test_fork_append_release_of_the_parent_and_reuse_of_the_source_in_one_step(caching):
    run, slots, copies = one_step_that_reuses_the_source(
        BlockManager(2, 4, reuse="lru", prefix_caching=caching)
    )
    assert slots["B"][:2] == (copies[0].source, 0) and copies == [(copies[0].source, slots["C"].block, 3)]
    assert run.audit() == []


def test_a_copy_into_the_source_of_an_earlier_one_in_the_same_step():
    """C's copy comes from block 0; A is gone, and D's copy goes into block 0: the order is all there is."""
    manager = BlockManager(4, 4, reuse="lru", free_order=[0, 1, 2, 3])
    run = Run(manager)
    run.append("AAABBX")
    run.release("X")
    run.fork("A", "C")
    run.fork("B", "D")
    slots = {"C": manager.append_slot("C")}
    run.release("A")
    slots["D"] = manager.append_slot("D")
    copies = [BlockCopy(s.copied_from, s.block, s.offset) for s in slots.values()]
    assert copies == [(0, 2, 3), (1, 0, 2)]
    run.cache.copy(copies)
    run.writer.write("C", 3, slots["C"])
    run.writer.write("D", 2, slots["D"])
    assert run.audit() == []
    run.cache.copy(copies[::-1])  # out of order, C would begin with what B wrote
    assert run.audit() != []


# -- planted bugs -------------------------------------------------------------------------------------------


def test_a_lost_decrement_is_named_by_check_and_no_token_is_wrong():
    run = Run(LostDecrement(4, 4))
    run.append("AAA")
    run.fork("A", "C")
    run.manager.check()
    run.append("C")
    assert run.audit() == []
    with pytest.raises(InvariantError, match=r"block 0: count 2, held by \['A'\]"):
        run.manager.check()
    run.release("A")
    run.release("C")
    assert run.manager.free_order() == [2, 3, 1]  # block 0 is lost


def test_an_early_free_is_named_by_check_before_any_token_is_wrong():
    run = Run(EarlyFree(2, 2))
    run.append("AAAA")
    run.fork("A", "C")
    run.release("A")
    assert run.audit() == []
    with pytest.raises(InvariantError, match=r"block 0: count 1, held by \['C'\], on the free list"):
        run.manager.check()
    run.append("B")
    assert run.findings() == {("C", 0, 0, 0): ("A[0]", "B[0]", "other")}


def test_a_copy_after_reuse_brings_the_new_owners_token():
    run, _, copies = one_step_that_reuses_the_source(BlockManager(2, 4, reuse="lru"), wrap=LateCopy)
    block = copies[0].destination
    assert run.findings() == {("C", 0, block, 0): ("A[0]", "B[0]", "other")}
    run.manager.check()


def test_a_wrong_slot_count_loses_the_last_token_before_the_fork():
    run = SharingRun(BlockManager(8, 4), wrap=ShortCopy)
    run.step({"A": [1, 2, 3]})
    run.fork("A", "C")
    run.step({"C": [4], "A": [5]})
    assert run.copies == 1
    assert run.findings() == {("C", 2): ("A[2]", "nothing", "never written")}
    run.manager.check()


def test_a_hit_on_an_unfinished_block_finds_what_nobody_wrote():
    run = SharingRun(UnfinishedHit(8, 4, prefix_caching=True))
    run.step({"A": [1, 2, 3]})
    with pytest.raises(RuntimeError), run.manager.reserve({"B": [9] * 8}):
        raise RuntimeError("the worker died")
    run.manager.check()
    run.step({"C": [9] * 9})
    assert run.hits == 8
    assert run.findings() == {("C", i): (f"C[{i}]", "nothing", "never written") for i in range(8)}
    run.manager.check()


def test_a_hit_on_an_unfinished_block_that_was_used_before_finds_stale_tokens():
    run = SharingRun(UnfinishedHit(2, 4, prefix_caching=True))
    run.step({"A": [1, 2, 3, 4, 5, 6, 7, 8]})
    run.release("A")
    with pytest.raises(RuntimeError), run.manager.reserve({"B": [9] * 8}):
        raise RuntimeError("the worker died")
    run.step({"C": [9] * 5})
    assert run.findings() == {("C", i): (f"C[{i}]", f"A[{i + 4}]", "stale") for i in range(4)}


def test_every_sharing_fault_has_a_name_and_a_symptom():
    assert len(SHARING_FAULTS) == 6
    for name, fault in SHARING_FAULTS.items():
        assert fault.name == name and fault.symptom.endswith(".")
