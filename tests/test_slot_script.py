"""The small script language of operations on allocators."""

import pytest

from kvlab.contiguous import GrowAndCopy
from kvlab.paged_allocator import PagedAllocator
from kvlab.slot_script import Step, carry_out, largest_hole, parse


def test_a_script_is_read():
    assert parse("admit A 4 3; append A\nrelease A") == [
        Step("admit", "A", 4, 3),
        Step("append", "A", 1),
        Step("release", "A"),
    ]
    assert str(Step("admit", "A", 4, 3)) == "admit A 4 3"


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("", "holds no operation"),
        ("alloc A 4", "there are admit, append and release"),
        ("admit A", "write it like admit A 4"),
        ("admit A -4", "cannot be read"),
        ("admit A 0", "cannot be read"),
        ("append", "write it like append A 2"),
        ("release A 3", "write it like release A"),
    ],
)
def test_nonsense_gets_a_sentence(script, says):
    with pytest.raises(ValueError, match=says):
        parse(script)


def test_operations_reach_the_allocator():
    memory, paged = GrowAndCopy(8), PagedAllocator(8, 2)
    for step in parse("admit A 2 2; admit B 2; append A 2; release B"):
        carry_out(step, memory)
        carry_out(step, paged)
    assert memory.held("A").tokens == paged.held("A").tokens == 4
    assert memory.request_ids() == paged.request_ids() == ["A"]
    assert (largest_hole(memory), largest_hole(paged)) == (4, 4)
