"""The block manager by example: worked tables, boundaries, sharing, reservations, and reported bugs."""

import numpy as np
import pytest

from kvlab import BlockCopy, BlockManager, Event, Growth, InvariantError, OutOfBlocks, Slot


def test_lengths_7_8_9_take_a_block_only_when_the_last_is_full():
    manager = BlockManager(8, 4, free_order=[7, 1, 3, 0, 2, 4, 5, 6])
    manager.append("A", 7)
    assert manager.block_table("A") == [7, 1]
    assert [manager.translate("A", t)[:2] for t in (0, 3, 4, 6)] == [(7, 0), (7, 3), (1, 0), (1, 2)]
    assert manager.append_slot("A") == Slot(1, 3, None)
    assert manager.block_table("A") == [7, 1]
    assert manager.append_slot("A") == Slot(3, 0, None)
    assert (manager.block_table("A"), manager.length("A")) == ([7, 1, 3], 9)


@pytest.mark.parametrize("block_size", [1, 2, 3, 4, 16])
def test_never_more_blocks_than_the_length_needs(block_size):
    """A new block when length % B == 0 before the append (nano-vllm issues 30, 91, 150), and no block more
    near the limit (vLLM issue 10730)."""
    manager = BlockManager(64, block_size)
    for length in range(1, 49):
        slot = manager.append_slot("A")
        assert slot.offset == (length - 1) % block_size
        assert len(manager.block_table("A")) == -(-length // block_size)


def test_interleaved_requests_never_meet():
    manager = BlockManager(8, 2)
    slots = [manager.append_slot(who)[:2] for who in "AABABABB"]
    assert len(set(slots)) == 8
    assert (manager.block_table("A"), manager.block_table("B")) == ([0, 2], [1, 3])


def test_append_takes_ids_or_a_number():
    manager = BlockManager(4, 4)
    assert manager.append("A", [11, 12, 13]) == Growth([Slot(0, 0), Slot(0, 1), Slot(0, 2)], [], 0)
    assert manager.append("A", np.int64(2)).slots == [Slot(0, 3), Slot(1, 0)]


@pytest.mark.parametrize("tokens", [0, -3, [], ()])
def test_append_refuses_less_than_one_token(tokens):
    manager = BlockManager(4, 4)
    with pytest.raises(ValueError, match="append at least 1 token"):
        manager.append("A", tokens)
    assert manager.request_ids() == []


def test_a_request_of_the_whole_pool_fits_only_without_the_null_block():
    """vLLM issue 35541: with N blocks a request of N blocks is impossible, with N + 1 it fits."""
    with pytest.raises(OutOfBlocks, match="4 blocks needed, 3 of 3 free: the pool can never serve this"):
        BlockManager(4, 16, null_block=True).append("A", 64)
    assert BlockManager(5, 16, null_block=True).append("A", 64).slots[-1] == Slot(4, 15)


def test_a_pool_with_nothing_to_give_is_refused_at_construction():
    """vLLM issue 27181."""
    with pytest.raises(ValueError, match="besides the null block"):
        BlockManager(1, 16, null_block=True)
    with pytest.raises(ValueError, match="block_size must be at least 1"):
        BlockManager(8, 0)


def test_a_table_that_holds_a_block_twice_counts_one_holder():
    """vLLM issue 3347: forking the table [0, 1, 0, 1] gives counts of 2, not 3."""
    manager = BlockManager(4, 1)
    manager.append("A", 2)
    manager._tables["A"].blocks += [0, 1]
    manager._tables["A"].length = 4
    manager._rows.write(manager._tables["A"].row, 2, [0, 1])
    manager.fork("A", "C")
    assert [manager.ref_count(block) for block in (0, 1)] == [2, 2]
    manager.check()
    manager.release("A")
    manager.release("C")
    assert manager.free_order() == [2, 3, 0, 1]
    manager.check()


def test_a_position_past_the_end_never_reads_the_neighbour():
    """vLLM issue 53982: two entries at B = 4, position 8."""
    manager = BlockManager(8, 4)
    manager.append("A", 8)
    manager.append("B", 4)
    for position in (8, -1):
        with pytest.raises(IndexError, match=f"'A' has 8 tokens: no position {position}"):
            manager.translate("A", position)


def test_unknown_requests_are_named():
    manager = BlockManager(4, 4)
    for call in (manager.release, manager.length, manager.block_table, lambda who: manager.translate(who, 0)):
        with pytest.raises(KeyError, match="no request 'Z'"):
            call("Z")
    with pytest.raises(IndexError, match="blocks are 0 to 3, got 4"):
        manager.ref_count(4)


def test_the_first_to_write_copies_and_the_last_holder_writes_in_place():
    manager = BlockManager(8, 4, free_order=[7, 1, 3, 0, 2, 4, 5, 6])
    manager.append("A", 6)
    manager.fork("A", "C")
    assert [manager.ref_count(block) for block in (7, 1)] == [2, 2]
    assert manager.append_slot("C") == Slot(3, 2, copied_from=1)
    assert manager.append_slot("A") == Slot(1, 2, copied_from=None)
    assert (manager.block_table("A"), manager.block_table("C")) == ([7, 1], [7, 3])
    assert [manager.ref_count(block) for block in (7, 1, 3)] == [2, 1, 1]


def test_a_full_shared_block_is_never_copied():
    manager = BlockManager(8, 4)
    manager.append("A", 8)
    manager.fork("A", "C")
    assert manager.append("C", 3).copies == []
    assert manager.append("A", 1).copies == []


def test_of_k_sharers_that_all_append_in_one_step_all_but_one_copy():
    manager = BlockManager(4, 4)  # three blocks are needed, and three are free
    manager.append("A", 3)
    manager.fork("A", "B")
    manager.fork("A", "C")
    with manager.reserve({"A": 1, "B": 2, "C": 1}) as reservation:
        assert reservation.copies == [BlockCopy(0, 1, 3), BlockCopy(0, 2, 3)]
        assert reservation["C"].slots == [Slot(0, 3)]
    manager.check()
    assert manager.ref_count(0) == 1


def test_a_copys_source_outlives_its_holders_until_the_step_is_over():
    """A copies away from a shared block; the other holder leaves while the step runs. The block must not be
    handed out before the copy is carried out."""
    manager = BlockManager(3, 4)
    manager.append("A", 2)
    manager.fork("A", "C")
    with manager.reserve({"A": 1}) as reservation:
        assert reservation.copies == [BlockCopy(0, 1, 2)]
        manager.release("C")
        assert manager.append("D", 4).slots[0].block == 2
        assert manager.num_free == 0
    assert manager.free_order() == [0]
    manager.check()


def test_rolling_back_gives_the_source_back_even_when_the_other_holder_left():
    manager = BlockManager(3, 4)
    manager.append("A", 2)
    manager.fork("A", "C")
    with pytest.raises(RuntimeError), manager.reserve({"A": 1}):
        manager.release("C")
        raise RuntimeError("the worker died")
    assert (manager.block_table("A"), manager.ref_count(0)) == ([0], 1)
    manager.check()


def test_rolling_back_restores_the_order_of_the_free_list():
    manager = BlockManager(8, 2, free_order=[5, 3, 7, 1, 0, 2, 4, 6])
    manager.append("A", 3)
    before = manager.free_order()
    with pytest.raises(RuntimeError), manager.reserve({"A": 4, "B": 5}):
        raise RuntimeError
    assert manager.free_order() == before
    assert manager.request_ids() == ["A"]


def test_a_batch_is_refused_as_a_whole():
    manager = BlockManager(4, 4)
    manager.append("A", 4)
    with pytest.raises(OutOfBlocks) as refused:
        manager.reserve({"A": 4, "B": 4, "C": 5})
    assert (refused.value.needed, refused.value.free, refused.value.total) == (4, 3, 4)
    assert manager.request_ids() == ["A"]
    assert manager.free_order() == [1, 2, 3]


def test_a_reservation_ends_once():
    manager = BlockManager(4, 4)
    with manager.reserve({"A": 2}) as reservation:
        assert manager.block_table("A") == [0]
        assert manager.length("A") == 0
        reservation.commit()
    assert manager.length("A") == 2
    for end in (reservation.commit, reservation.roll_back):
        with pytest.raises(ValueError, match="already committed or rolled back"):
            end()


def test_while_reserved_a_request_refuses_other_changes():
    manager = BlockManager(4, 4)
    manager.append("A", 2)
    with manager.reserve({"A": 1}):
        for change in (manager.append_slot, manager.release, lambda who: manager.fork(who, "C")):
            with pytest.raises(ValueError, match="'A' is in an open reservation: commit it or roll it back"):
                change("A")
        with pytest.raises(ValueError, match="open reservation"):
            manager.reserve({"B": 1, "A": 1})
        assert manager.append_slot("B") == Slot(1, 0)
    assert manager.length("A") == 3


def test_fork_onto_a_live_request_is_refused():
    manager = BlockManager(4, 4)
    manager.append("A", 2)
    manager.append("B", 2)
    with pytest.raises(ValueError, match="cannot fork 'A' onto 'B': that request is live"):
        manager.fork("A", "B")
    with pytest.raises(KeyError, match="no request 'Z'"):
        manager.fork("Z", "C")


def test_events_tell_what_happened_to_each_block():
    events = []
    manager = BlockManager(4, 4, on_event=events.append)
    manager.append("A", 2)
    manager.fork("A", "C")
    manager.append_slot("C")
    manager.release("A")
    with pytest.raises(RuntimeError), manager.reserve({"C": 2}):
        raise RuntimeError
    assert events == [
        Event("allocate", 0, "A"),
        Event("share", 0, "C"),
        Event("allocate", 1, "C"),
        Event("copy", 1, "C"),
        Event("free", 0, "A"),
        Event("allocate", 2, "C"),
        Event("free", 2, "C"),
    ]


def test_a_listener_that_raises_finds_and_leaves_sound_books():
    def listen(event):
        raise RuntimeError("the listener broke")

    manager = BlockManager(4, 4, on_event=listen)
    for change in (
        lambda: manager.append("A", 4),
        lambda: manager.append_slot("A"),
        lambda: manager.release("A"),
    ):
        with pytest.raises(RuntimeError, match="the listener broke"):
            change()
        manager.check()
    assert manager.request_ids() == []


def test_tables_for_the_kernel_grow_with_requests_and_lengths():
    manager = BlockManager(2000, 2)
    for who in range(40):
        manager.append(who, 1 + who)
    tables = manager.block_table_array(range(40))  # [S, max_blocks]
    assert (tables.dtype, tables.shape) == (np.int32, (40, 20))
    for who, row in enumerate(tables.tolist()):
        table = manager.block_table(who)
        assert row == table + [-1] * (20 - len(table))
    lens = manager.context_lens([3, 0])  # [S]
    assert (lens.dtype, lens.tolist()) == (np.int32, [4, 1])
    manager.append("long", 1200)
    assert manager.block_table_array(["long"])[0].tolist() == manager.block_table("long")
    assert manager.block_table_array([]).shape == (0, 0)


def test_the_kernels_tables_are_copies():
    manager = BlockManager(4, 4)
    manager.append("A", 4)
    manager.block_table_array(["A"])[:] = 99
    manager.block_table("A").append(99)
    manager.check()


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (lambda m: m._tables["A"].blocks.append(3), "6 tokens need 2 blocks"),
        (lambda m: m._rows.set(m._tables["A"].row, 1, 3), "the kernel's row says"),
        (lambda m: m._ref_counts.__setitem__(1, 2), "block 1: count 2, held by .'A'."),
        (lambda m: m._pool.free.append(0), "block 0: count 1, held by .'A'., on the free list"),
        (lambda m: m._pool.free.remove(2), "block 2: count 0, held by .., not on the free list"),
    ],
)
def test_check_finds_planted_damage(break_it, says):
    manager = BlockManager(4, 4)
    manager.append("A", 6)
    manager.check()
    break_it(manager)
    with pytest.raises(InvariantError, match=says):
        manager.check()
