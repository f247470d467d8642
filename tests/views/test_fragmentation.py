"""The fragmentation stepper: the same script on memories with holes and on a paged one."""

import re

from kvlab.contiguous import GrowAndCopy, ReserveMax
from kvlab.paged_allocator import PagedAllocator
from kvlab.views import FragmentationStepper
from kvlab.views.fragmentation_frames import slots_of

HOLES = "admit A 4; admit B 4; admit C 4; admit D 4; release A; release C; admit E 8"


def _figure(script=HOLES, **options):
    return FragmentationStepper(script, [GrowAndCopy(16), PagedAllocator(16, 2)], **options)


def test_every_slot_says_who_holds_it_and_whether_it_is_filled():
    memory = ReserveMax(12, 4, placement="first fit")
    memory.admit("A", 1, 2)
    memory.admit("B", 4)
    held = [("A", True), ("A", False), ("A", False), ("A", False), *[("B", True)] * 4, *[(None, False)] * 4]
    assert list(slots_of(memory)) == held
    paged = PagedAllocator(8, 2)
    paged.admit("A", 1)
    paged.admit("B", 1)
    paged.append("A")
    paged.append("A")
    assert [who for who, _ in slots_of(paged)] == ["A", "A", "B", "B", "A", "A", None, None]
    assert [filled for _, filled in slots_of(paged)][2:6] == [True, False, True, False]


def test_what_does_not_fit_in_one_memory_goes_on_in_the_other():
    figure = _figure(HOLES + "; append E; release E")
    contiguous, paged = figure.frames[7][1]
    assert "largest hole has 4" in contiguous.problem and paged.problem is None
    assert (contiguous.free, contiguous.largest, paged.free) == (8, 4, 0)
    after = figure.frames[9][1]
    assert after[0].slots == contiguous.slots and after[1].free == 8
    assert figure.tell(7).startswith("admit E 8: first fit: 8 slots in one piece needed")


def test_the_picture_shows_the_step():
    figure = _figure()
    assert 'data-step="0"' in figure.static() and "does not fit" not in figure.static()
    figure.go(7)
    assert "does not fit: 8 slots in one piece needed" in figure.static()
    assert "8 slots free, largest hole 4" in figure.static() and "0 slots free" in figure.static()
    assert len(re.findall("<path", figure.static())) < 60 and len(figure.svg(uid="u")) < 25_000
    figure.go(99)
    assert figure.step == 7 and "last step" in figure.telling.value


def test_reserved_slots_are_hatched():
    figure = FragmentationStepper("admit A 3 2", [ReserveMax(32, 16, placement="first fit")], step=1)
    assert "url(#" in figure.static() and "16 slots free" in figure.static()
