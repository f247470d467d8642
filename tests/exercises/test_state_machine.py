"""The search finds what is wrong with a manager, hands back the shortest sequence, and ends."""

import itertools
import os

import pytest

from kvlab import BlockManager, OutOfBlocks
from kvlab.exercises import check, get, manager_from
from kvlab.exercises.oracle import Oracle, Wrong
from kvlab.exercises.registry import define
from kvlab.exercises.state_machine import Search
from kvlab.recording import parse_script


class Careful(BlockManager):
    """A right manager to plant bugs in."""


class LatePop(Careful):
    """Hands out a block twice: it forgets one of the free list when three requests are live."""

    def append_slot(self, request_id):
        slot = super().append_slot(request_id)
        if len(self.request_ids()) == 3 and self._pool.free:
            self._pool.free.popleft()
        return slot


class ForksWithoutCopy(Careful):
    def append_slot(self, request_id):
        return super().append_slot(request_id)._replace(copied_from=None)

    def fork(self, parent_id, child_id):
        super().fork(parent_id, child_id)
        if self.length(child_id) % self.block_size:
            self.append_slot(child_id)


@pytest.mark.parametrize("reuse", ["fifo", "lru"])
def test_a_right_manager_has_no_counterexample(reuse):
    assert Search(lambda n, b: BlockManager(n, b, reuse=reuse), fork=True).shortest() is None


def _fails(factory, pool, operations):
    try:
        oracle = Oracle(factory(*pool))
        for operation in operations:
            live = oracle.state.tables
            if operation.kind == "append" or operation.request_id in live:
                oracle.step(operation)
    except Wrong:
        return True
    return False


@pytest.fixture(scope="module")
def late_pop():
    return Search(LatePop).shortest()


def test_it_is_the_shortest_there_is(late_pop):
    finding = late_pop
    script = parse_script(finding.script)
    pool = (finding.num_blocks, finding.block_size)
    assert _fails(LatePop, pool, script)
    alphabet = parse_script("append A; append B; append C; append A 2; append B 2; release A; release B")
    for length in range(len(script)):
        for shorter in itertools.product(alphabet, repeat=length):
            assert not _fails(LatePop, pool, shorter), shorter


def test_a_bug_in_fork_is_found():
    finding = Search(ForksWithoutCopy, fork=True).shortest()
    assert finding.script.endswith("fork A B") and len(parse_script(finding.script)) == 2


def test_the_result_carries_script_and_stepper():
    exercise = get("04.manager")
    wrong = next(w for w in exercise.wrong if w.name == "length kept after a release")
    result = check("04.manager", define(exercise, wrong.source))
    assert result.counterexample == "append A; release A; append A"
    stepper = result.stepper()
    assert len(stepper.frames) == 4 and stepper.frames[-1].error


def test_a_hang_in_the_stepper_is_a_frame():
    exercise = get("04.manager")
    wrong = next(w for w in exercise.wrong if w.name == "waits when the pool is full")
    result = check("04.manager", define(exercise, wrong.source))
    assert "never ends" in result.stepper().frames[-1].error


def test_hangs_do_not_make_the_search_endless(monkeypatch):
    class HangsLate(Careful):
        def append_slot(self, request_id):
            while self.num_allocated >= 4:
                pass
            return super().append_slot(request_id)

    monkeypatch.setattr("kvlab.exercises.state_machine.SECONDS", 0.2)
    search = Search(HangsLate, batch=False)
    finding = search.shortest()
    assert "never ends" in finding.sentence and search._hangs <= 4


def test_what_a_constructor_raises_is_told():
    def factory(num_blocks, block_size):
        raise ValueError("no pool today")

    finding = Search(factory).shortest()
    assert finding.script == "" and "no pool today" in finding.telling()
    assert "before the first operation" in finding.telling()


def test_methods_that_return_nonsense():
    made = manager_from(append_slot=lambda self, r: [r], release=lambda self, r: [r])
    assert "append_slot('A')` should return (0, 0)" in check("04.manager", made).message
    assert check("04.manager", object).state == "failed"


def test_refusals_are_compared_in_every_figure():
    class Miscounts(Careful):
        def append(self, request_id, tokens):
            try:
                return super().append(request_id, tokens)
            except OutOfBlocks as error:
                raise OutOfBlocks(error.needed + 1, error.free, error.total) from None

    assert "should say needed=" in Search(Miscounts).shortest().sentence


def test_the_same_answer_gives_the_same_finding(late_pop):
    assert Search(LatePop).shortest() == late_pop


def test_nothing_is_written_where_the_notebook_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Search(BlockManager).shortest() is None
    assert os.listdir(tmp_path) == []
