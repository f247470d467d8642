"""Every allocator against one rule book: no slot lost, none held twice, and a refusal changes nothing."""

from itertools import pairwise

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from kvlab.allocator import Account, OutOfSlots
from kvlab.block_pool import OutOfBlocks
from kvlab.contiguous import GrowAndCopy, Oracle, PowerOfTwo, ReserveMax
from kvlab.paged_allocator import PagedAllocator

SLOTS, LONGEST = 96, 24
MAKERS = {
    "reserve max": lambda: ReserveMax(SLOTS, LONGEST),
    "power of two": lambda: PowerOfTwo(SLOTS, LONGEST),
    "oracle": lambda: Oracle(SLOTS, LONGEST),
    "oracle, first fit": lambda: Oracle(SLOTS, LONGEST, "first fit"),
    "first fit": lambda: GrowAndCopy(SLOTS),
    "first fit, headroom": lambda: GrowAndCopy(SLOTS, headroom=3),
    "first fit, compacting": lambda: GrowAndCopy(SLOTS, headroom=2, compaction=True),
    "paged": lambda: PagedAllocator(SLOTS, 4),
}
operations = st.lists(
    st.tuples(
        st.sampled_from(["admit", "append", "append", "append", "release"]),
        st.integers(0, 7),
        st.integers(1, 16),
        st.integers(0, 8),
    ),
    max_size=80,
)


def state(allocator):
    held = {who: (h.start, h.size, h.tokens, h.total) for who, h in allocator._held.items()}
    return allocator.account(), held, allocator.copies


def do(allocator, operation):
    """One operation; a refusal leaves everything as it was."""
    kind, who, prompt, output = operation
    before = state(allocator)
    try:
        if kind == "admit":
            allocator.admit(who, prompt, output)
        elif kind == "append":
            allocator.append(who)
        else:
            allocator.release(who)
    except (MemoryError, KeyError, ValueError):
        assert state(allocator) == before
        return False
    return True


@pytest.mark.parametrize("name", MAKERS)
@given(operations=operations)
@settings(max_examples=60)
def test_every_slot_is_accounted_for(name, operations):
    """Against a model that knows only who holds how many tokens."""
    allocator, expected = MAKERS[name](), {}
    for operation in operations:
        kind, who, prompt, _ = operation
        if do(allocator, operation):
            if kind == "release":
                del expected[who]
            else:
                expected[who] = prompt if kind == "admit" else expected[who] + 1
        allocator.check()
        account = allocator.account()
        assert account.total == SLOTS
        assert account.tokens == sum(expected.values())
        assert {who: allocator.held(who).tokens for who in allocator.request_ids()} == expected
        if hasattr(allocator, "holes"):
            taken = {s for who in expected for s in span(allocator.held(who))}
            free = {s for start, size in allocator.holes() for s in range(start, start + size)}
            assert not taken & free
    for who in list(expected):
        allocator.release(who)
    assert allocator.account() == Account(0, 0, 0, SLOTS)
    allocator.check()
    if hasattr(allocator, "holes"):
        assert sum(size for _, size in allocator.holes()) == SLOTS


def span(held):
    return range(held.start, held.start + held.size)


@given(operations=operations)
def test_first_fit_loses_no_slot(operations):
    """Requests and holes together are the whole memory, and no two holes touch."""
    for allocator in (GrowAndCopy(SLOTS, headroom=1), Oracle(SLOTS, LONGEST, "first fit")):
        for operation in operations:
            do(allocator, operation)
            holes = allocator.holes()
            held = sum(allocator.held(who).size for who in allocator.request_ids())
            assert held + sum(size for _, size in holes) == SLOTS == held + allocator._holes.free
            assert all(a + b < c for (a, b), (c, _) in pairwise(holes))


@given(operations=operations, block_size=st.integers(1, 9))
def test_paged_waste_is_below_a_block_a_request(operations, block_size):
    """At most block_size - 1 empty slots a request, and every free slot can be used."""
    allocator = PagedAllocator(SLOTS, block_size)
    for operation in operations:
        do(allocator, operation)
        for who in allocator.request_ids():
            held = allocator.held(who)
            assert 0 <= held.size - held.tokens <= block_size - 1
            assert held.size == len(allocator.manager.block_table(who)) * block_size
        assert allocator.account().external == allocator.manager.num_free * block_size
        allocator.manager.check()


def fits_by_total_only(allocator, prompt: int) -> bool:
    """Whether a request of `prompt` tokens is refused although that many slots belong to nobody."""
    enough = allocator.account().external >= prompt
    try:
        allocator.admit("probe", prompt)
    except MemoryError:
        return enough
    allocator.release("probe")
    return False


def all_free_slots_are_refused(make):
    """A predicate on operations: a request for every free slot (in whole blocks) is refused after them."""

    def refused(operations) -> bool:
        allocator = make()
        for operation in operations:
            do(allocator, operation)
        free = allocator.account().external
        return free > 0 and fits_by_total_only(allocator, free)

    return refused


SEARCH = settings(max_examples=2000, database=None, derandomize=True)


def test_hypothesis_finds_a_request_that_fits_by_total_but_by_no_hole():
    """And shrinks it to three operations: two neighbours, of which the first leaves its place, so that free
    slots lie on both sides of the second."""
    found = find(operations, all_free_slots_are_refused(MAKERS["first fit"]), settings=SEARCH)
    (kind, who, *_), (other_kind, other, *_), (last, leaving, *_) = found
    assert (kind, other_kind, leaving) == ("admit", "admit", who) and other != who
    assert last in ("append", "release"), "it outgrows its place, or ends"


@pytest.mark.parametrize("block_size", [1, 2, 4, 8])
def test_hypothesis_finds_none_for_the_paged_one(block_size):
    with pytest.raises(NoSuchExample):
        find(
            operations, all_free_slots_are_refused(lambda: PagedAllocator(SLOTS, block_size)), settings=SEARCH
        )


def test_the_request_that_does_not_fit_is_told_both_numbers():
    allocator = GrowAndCopy(16)
    for who in "ABCD":
        allocator.admit(who, 4)
    allocator.release("A")
    allocator.release("C")
    assert allocator.holes() == [(0, 4), (8, 4)]
    with pytest.raises(
        OutOfSlots, match="6 slots in one piece needed: 8 are free, but the largest hole has 4"
    ):
        allocator.admit("E", 6)
    compacting = GrowAndCopy(16, compaction=True)
    for who in "ABCD":
        compacting.admit(who, 4)
    compacting.release("A")
    compacting.release("C")
    compacting.admit("E", 6)
    assert (compacting.copies, compacting.held("E").start) == (8, 8)


@given(operations=operations, block_size=st.sampled_from([1, 2, 4, 8]), probe=st.integers(1, SLOTS))
def test_a_request_that_fits_by_total_fits_the_paged_one(operations, block_size, probe):
    """Whole blocks are the only unit: enough free slots in whole blocks are always enough."""
    allocator = PagedAllocator(SLOTS, block_size)
    for operation in operations:
        do(allocator, operation)
    assert not fits_by_total_only(allocator, -(-probe // block_size) * block_size)


@given(operations=operations)
def test_compaction_makes_every_free_slot_reachable(operations):
    allocator = GrowAndCopy(SLOTS, compaction=True)
    for operation in operations:
        free = allocator.account().external
        kind, who, prompt, _ = operation
        known = who in allocator.request_ids()
        enough = {"admit": not known and prompt <= free, "append": known and free > 0, "release": known}
        assert do(allocator, operation) == enough[kind]


def test_the_parts_of_the_account():
    """10 tokens now and 6 to come: 48 of 64 slots are reserved for nothing by max, 0 by the oracle."""
    for maker, expected in [
        (lambda: ReserveMax(128, 64), Account(10, 6, 48, 64)),
        (lambda: PowerOfTwo(128, 64), Account(10, 6, 2, 110)),
        (lambda: Oracle(128, 64), Account(10, 6, 0, 112)),
        (lambda: GrowAndCopy(128), Account(10, 0, 0, 118)),
        (lambda: PagedAllocator(128, 16), Account(10, 6, 0, 112)),
    ]:
        allocator = maker()
        allocator.admit("A", 10, 6)
        assert allocator.account() == expected, allocator.name
        allocator.append("A")
        assert allocator.account()[:2] == (11, max(0, expected.reserved - 1)), allocator.name


def test_an_output_that_outgrows_what_was_announced_eats_into_the_waste():
    allocator = ReserveMax(64, 8)
    allocator.admit("A", 3)
    assert allocator.account() == Account(3, 0, 5, 56)
    for _ in range(5):
        allocator.append("A")
    assert allocator.account() == Account(8, 0, 0, 56)
    with pytest.raises(OutOfSlots):
        allocator.append("A")


def test_growing_by_copy_counts_what_moves():
    allocator = GrowAndCopy(16)
    allocator.admit("A", 3)
    allocator.admit("B", 2)
    allocator.append("A")
    assert (allocator.held("A").start, allocator.copies) == (5, 3)
    allocator.append("A")
    assert allocator.copies == 3, "the slots behind it were free"
    assert allocator.holes() == [(0, 3), (10, 6)]


def test_what_can_never_fit_is_refused_with_its_reason():
    with pytest.raises(ValueError, match="more than max_len, 24"):
        ReserveMax(96, 24).admit("A", 20, 5)
    with pytest.raises(ValueError, match="the largest piece of the empty memory has 8: it can never fit"):
        ReserveMax(12, 12).admit("A", 2)
    with pytest.raises(ValueError, match="needs 16 slots, the memory has 12"):
        PagedAllocator(15, 4).admit("A", 13)
    with pytest.raises(ValueError, match="at least 1 token"):
        GrowAndCopy(8).admit("A", 0)
    with pytest.raises(ValueError, match="is live"):
        allocator = GrowAndCopy(8)
        allocator.admit("A", 1)
        allocator.admit("A", 1)
    with pytest.raises(KeyError, match="no request 'B'"):
        PagedAllocator(16, 4).append("B")
    with pytest.raises(OutOfBlocks):
        paged = PagedAllocator(8, 4)
        paged.admit("A", 8)
        paged.admit("B", 1)
    for bad in (lambda: GrowAndCopy(0), lambda: GrowAndCopy(8, headroom=-1), lambda: Oracle(8, 0)):
        with pytest.raises(ValueError):
            bad()
    with pytest.raises(ValueError, match="placement must be one of buddy, first fit"):
        Oracle(8, 8, "best fit")


def test_the_8_9_percent_by_hand():
    """7 reservations of 2,048 fit into 15,728 slots; the rest, 1,392 slots or 8.85 %, belongs to nobody."""
    allocator = ReserveMax(15_728, 2048)
    for who in range(7):
        allocator.admit(who, 1)
    with pytest.raises(OutOfSlots):
        allocator.admit(7, 1)
    assert round(allocator.account().external / 15_728 * 100, 2) == 8.85
