"""What is wrong with a state, seen from outside."""

import pytest

from kvlab import BlockManager, State, snapshot, violations


def state(tables, lengths, free, **more) -> State:
    return State(num_blocks=4, block_size=2, tables=tables, lengths=lengths, free=free, **more)


SOUND = state({"A": (0, 2)}, {"A": 3}, (1, 3))


def test_a_sound_state_breaks_nothing():
    assert violations(SOUND) == []
    assert violations(state({}, {}, (1, 2, 3), null_block=0)) == []
    assert violations(state({"A": (0,), "C": (0,)}, {"A": 1, "C": 1}, (1, 2, 3), may_share=True)) == []


@pytest.mark.parametrize(
    ("broken", "kind", "block", "says"),
    [
        (state({"A": (0,)}, {"A": 2}, (1, 3)), "leak", 2, "neither free nor in any table"),
        (state({"A": (0,)}, {"A": 2}, (1, 2, 3, 1)), "double free", 1, "on the free list 2 times"),
        (state({"A": (0,)}, {"A": 2}, (0, 1, 2, 3)), "held and free", 0, "in the table of A"),
        (state({"A": (0,), "B": (0,)}, {"A": 1, "B": 2}, (1, 2, 3)), "shared by mistake", 0, "A and B"),
        (state({"A": (7,)}, {"A": 2}, (0, 1, 2, 3)), "unknown block", 7, "no such block"),
        (state({}, {}, (0, 1, 2, 3), null_block=0), "unknown block", 0, "no such block"),
        (state({"A": (0,)}, {"A": 3}, (1, 2, 3)), "too few blocks", None, "3 tokens, so 2 blocks of 2"),
        (state({"A": (0, 1)}, {"A": 2}, (2, 3)), "too many blocks", None, "table is [0, 1]"),
        (
            state({"A": (0,)}, {"A": 2}, (1, 2, 3), may_share=True, ref_counts=(2, 0, 0, 0)),
            "wrong count",
            0,
            "count 2, but 1 holders",
        ),
    ],
)
def test_each_broken_rule_is_named(broken, kind, block, says):
    (violation,) = violations(broken)
    assert (violation.kind, violation.block) == (kind, block)
    assert says in violation.sentence


def test_a_snapshot_shows_the_manager_as_it_is():
    manager = BlockManager(4, 2, null_block=True)
    manager.append("A", 3)
    manager.fork("A", "C")
    seen = snapshot(manager, manager.request_ids())
    assert seen.tables == {"A": (1, 2), "C": (1, 2)}
    assert seen.lengths == {"A": 3, "C": 3}
    assert (seen.free, seen.null_block, seen.may_share) == ((3,), 0, True)
    assert seen.ref_counts == (0, 2, 2, 0)
    assert [seen.slots_filled(block) for block in range(4)] == [0, 2, 1, 0]
    assert seen.holders(1) == ["A", "C"]
    assert violations(seen) == []


@pytest.mark.parametrize("wrong", [None, 7, ["x"]])
def test_a_table_that_is_none_is_reported(wrong):
    class Odd(BlockManager):
        def block_table(self, request_id):
            return wrong

    manager = Odd(4, 2)
    manager.append("A", 1)
    with pytest.raises(TypeError, match=r"block_table\('A'\) returned"):
        snapshot(manager, ["A"])
