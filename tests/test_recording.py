"""Scripts, frames and their telling, on our manager and on broken ones."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab import BlockCopy, BlockManager, Event, Operation, Slot, parse_script, record


class Small:
    """The smallest manager, as a learner writes it."""

    def __init__(self, num_blocks: int = 4, block_size: int = 2):
        self.num_blocks, self.block_size = num_blocks, block_size
        self.free, self.tables, self.lengths = deque(range(num_blocks)), {}, {}

    def append_slot(self, who):
        table, length = self.tables.setdefault(who, []), self.lengths.get(who, 0)
        if length % self.block_size == 0:
            if not self.free:
                raise MemoryError("the pool is empty")
            table.append(self.free.popleft())
        self.lengths[who] = length + 1
        return table[-1], length % self.block_size

    def release(self, who):
        self.free.extend(self.tables.pop(who))
        del self.lengths[who]

    def block_table(self, who):
        return self.tables[who]

    def length(self, who):
        return self.lengths[who]

    def free_order(self):
        return list(self.free)


def test_scripts_are_read_as_written():
    assert parse_script("append A; append B 3\nfork A C; ; release B; reserve A 1 B 2; roll back C 4") == [
        Operation("append", "A"),
        Operation("append", "B", 3),
        Operation("fork", "A", other="C"),
        Operation("release", "B"),
        Operation("reserve", batch=(("A", 1), ("B", 2))),
        Operation("roll back", batch=(("C", 4),)),
    ]


@pytest.mark.parametrize(
    "wrong", ["grow A", "append", "append A 0", "append A x", "fork A", "reserve A", "roll A 1"]
)
def test_a_statement_that_cannot_be_read_is_quoted(wrong):
    with pytest.raises(ValueError, match=f"cannot read '{wrong}': write append A"):
        parse_script(f"append A; {wrong}")


def test_each_step_is_told_in_one_line():
    manager = BlockManager(8, 4, free_order=[7, 1, 3, 0, 2, 4, 5, 6])
    script = "append A 7; append A; append A; fork A C; append C; release A; reserve C 1 B 1; roll back B 9"
    assert [frame.telling for frame in record(script, manager)] == [
        "Before the first step.",
        "A appends tokens 0 to 6: blocks 7, 1 allocated, table [7, 1], length 7.",
        "A appends token 7: block 1 has room, slot 3, table [7, 1], length 8.",
        "A appends token 8: block 3 allocated, table [7, 1, 3], length 9.",
        "C is forked from A: it shares blocks 7, 1, 3, no block taken.",
        "C appends token 9: block 3 is shared: 1 slot copied to block 0, table [7, 1, 0], length 10.",
        "A is released: block 3 free again, blocks 7, 1 kept by another holder.",
        "One step for the batch. C appends token 10: block 0 has room, slot 2, table [7, 1, 0], length 11. "
        "B appends token 0: block 2 allocated, table [2], length 1.",
        "B + 9 tokens was reserved and rolled back: everything is as it was.",
    ]


def test_frames_hold_state_slots_copies_and_events():
    frames = record("append A 2; fork A C; append C", BlockManager(4, 4))
    last = frames[-1]
    assert last.state.tables == {"A": (0,), "C": (1,)}
    assert last.state.free == (2, 3)
    assert last.slots == {"C": [Slot(1, 2, copied_from=0)]}
    assert last.copies == [BlockCopy(0, 1, 2)]
    assert last.events == [Event("allocate", 1, "C"), Event("copy", 1, "C")]
    assert [frame.step for frame in frames] == [0, 1, 2, 3]
    assert all(frame.error is None for frame in frames)


def test_a_refusal_is_told_and_the_script_goes_on():
    for manager in (Small(2, 2), BlockManager(2, 2)):
        frames = record("append A 4; append B; release A; append B", manager)
        assert frames[2].telling.startswith("B + 1 token is refused: ")
        assert frames[2].telling.endswith("Nothing changed.")
        assert frames[-1].state.tables == {"B": (0,)}


class LeavesDebris(Small):
    def append_slot(self, who):
        self.lengths[who] = self.lengths.get(who, 0) + 1
        self.tables.setdefault(who, [])
        raise MemoryError("full")


class Forgets(Small):
    def release(self, who):
        self.tables.pop(who)
        del self.lengths[who]


class ReturnsNothing(Small):
    def append_slot(self, who):
        super().append_slot(who)


class OffByOne(Small):
    def append_slot(self, who):
        block, offset = super().append_slot(who)
        return block, offset + 1


class NoLength(Small):
    def length(self, who):
        return None


class FreesTwice(Small):
    def release(self, who):
        self.free.extend(self.tables[who])
        super().release(who)


class KeepsTheHead(Small):
    def append_slot(self, who):
        slot = super().append_slot(who)
        self.free.append(slot[0])
        return slot


@pytest.mark.parametrize(
    ("manager", "script", "says"),
    [
        (LeavesDebris(), "append A; append A", "refused (full), but the state was changed"),
        (Forgets(), "append A; release A; append A", "block 0 is neither free nor in any table: it is lost"),
        (ReturnsNothing(), "append A; append A", "append_slot returned None, not a slot (block, offset)"),
        (
            OffByOne(),
            "append A 2",
            "token 0 of A was put at block 0 slot 1, but its table says block 0 slot 0",
        ),
        (NoLength(), "append A", "length('A') returned None, not a number of tokens"),
        (FreesTwice(), "append A; release A", "block 0 is on the free list 2 times"),
        (KeepsTheHead(), "append A", "block 0 is free, yet in the table of A"),
        (Small(), "release Z", "KeyError: Z"),
        (Small(), "fork A C", "AttributeError: 'Small' object has no attribute 'fork'"),
    ],
)
def test_a_broken_manager_yields_a_last_frame_that_shows_it(manager, script, says):
    frames = record(script, manager)
    assert says in frames[-1].error
    assert all(frame.error is None for frame in frames[:-1])
    assert frames[-1].telling


class NoFreeList(Small):
    def free_order(self):
        return None


def test_a_manager_that_cannot_be_read_yields_one_frame_that_says_why():
    (frame,) = record("append A", NoFreeList())
    assert frame.error == "TypeError: free_order() returned None, not a list of block ids"
    assert (frame.step, frame.state.num_blocks, frame.state.tables) == (0, 4, {})
    (frame,) = record("append A", object())
    assert frame.error.startswith("AttributeError")


def test_every_call_can_be_put_under_a_limit():
    called = []

    def call(function, *arguments):
        called.append(getattr(function, "__name__", ""))
        return function(*arguments)

    record("append A; release A", Small(), call=call)
    assert called == ["snapshot", "append_slot", "snapshot", "release", "snapshot"]


operations = st.one_of(
    st.builds(lambda who, n: f"append {who} {n}", st.sampled_from("ABC"), st.integers(1, 7)),
    st.builds(lambda who: f"release {who}", st.sampled_from("ABC")),
    st.builds(lambda a, b: f"fork {a} {b}", st.sampled_from("ABC"), st.sampled_from("ABC")),
    st.builds(lambda a, n: f"reserve {a} {n}", st.sampled_from("ABC"), st.integers(1, 7)),
    st.builds(lambda a, n: f"roll back {a} {n}", st.sampled_from("ABC"), st.integers(1, 7)),
)


@given(st.lists(operations, max_size=20), st.integers(1, 10), st.integers(1, 4))
def test_a_sound_manager_never_gets_an_error_frame_but_for_misuse(script, num_blocks, block_size):
    frames = record("; ".join(script), BlockManager(num_blocks, block_size))
    if frames[-1].error:
        assert frames[-1].error.startswith(("KeyError: no request", "ValueError: cannot fork"))
    assert [frame.step for frame in frames] == list(range(len(frames)))
    assert all(frame.telling for frame in frames)
