"""First fit and the buddy system against a plain set of free slots."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.holes import Buddy, FirstFit, power_of_two


@pytest.mark.parametrize("kind", [FirstFit, Buddy])
@given(
    num_slots=st.integers(1, 100), steps=st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=60)
)
def test_pieces_are_free_when_taken_and_whole_again_at_the_end(kind, num_slots, steps):
    holes, free, taken = kind(num_slots), set(range(num_slots)), []
    start_state = holes.holes()
    for size, give in steps:
        if give and taken:
            start, size = taken.pop(size % len(taken))
            holes.give(start, size)
            size = power_of_two(size) if kind is Buddy else size
            free |= set(range(start, start + size))
        else:
            start = holes.take(size)
            real = power_of_two(size) if kind is Buddy else size
            if start is None:
                assert holes.largest < real
                continue
            piece = set(range(start, start + real))
            assert piece <= free
            free -= piece
            taken.append((start, size))
        assert holes.free == len(free)
        listed = [slot for start, size in holes.holes() for slot in range(start, start + size)]
        assert len(listed) == len(set(listed)) and set(listed) == free
        assert holes.largest == max((size for _, size in holes.holes()), default=0)
    for piece in taken:
        holes.give(*piece)
    assert holes.holes() == start_state, "neighbours must be merged again"


def test_the_buddy_system_cuts_halves_and_joins_them():
    buddy = Buddy(16)
    assert [buddy.take(size) for size in (3, 5, 2)] == [0, 8, 4]
    assert buddy.holes() == [(6, 2)]
    buddy.give(0, 3)
    assert buddy.holes() == [(0, 4), (6, 2)], "4 and 6 are no buddies of 0"
    buddy.give(4, 2)
    assert buddy.holes() == [(0, 8)]


def test_a_memory_that_is_no_power_of_two_is_cut_into_such():
    assert [size for _, size in Buddy(15_728).holes()] == [8192, 4096, 2048, 1024, 256, 64, 32, 16]


def test_first_fit_takes_the_first_hole_that_is_large_enough():
    holes = FirstFit(20)
    a, b, c = (holes.take(size) for size in (4, 6, 5))
    holes.give(a, 4)
    holes.give(b, 6)
    assert holes.holes() == [(0, 10), (15, 5)] and c == 10
    assert (holes.take(5), holes.take(6), holes.room_at(15), holes.room_at(10)) == (0, None, 5, 0)


@pytest.mark.parametrize(
    ("size", "expected"), [(0, 1), (1, 1), (2, 2), (3, 4), (25, 32), (1024, 1024), (1025, 2048)]
)
def test_power_of_two(size, expected):
    assert power_of_two(size) == expected
