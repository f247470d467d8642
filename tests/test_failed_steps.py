"""Steps that fail, and managers that are none: what is left afterwards, and what is said."""

import pytest
from models import small_decoder
from step_managers import PROMPT, Smallest, assert_equal_steps, both

from kvlab.block_manager import BlockManager
from kvlab.block_pool import OutOfBlocks
from kvlab.manager_steps import ManagerError
from kvlab.sequences import PagedSequences
from kvlab.state import snapshot


def test_a_full_pool_changes_nothing_with_a_manager_that_reserves():
    decoder = small_decoder()
    pair = both(decoder, BlockManager(4, 4))
    assert_equal_steps(decoder, pair, {"A": PROMPT, "B": PROMPT})
    assert_equal_steps(decoder, pair, {"A": [1]})
    before = snapshot(pair[1].manager, "AB")
    with pytest.raises(OutOfBlocks):
        decoder.step(pair[1], {"B": [1, 2], "C": [1]})
    assert snapshot(pair[1].manager, "AB") == before
    assert pair[1].length("B") == 7 and pair[1].length("C") == 0
    assert_equal_steps(decoder, pair, {"B": [1]})


@pytest.mark.parametrize("manager", [BlockManager, Smallest])
def test_a_full_pool_with_any_manager_can_be_recovered_from(manager):
    decoder = small_decoder()
    pair = both(decoder, manager(3, 4))
    paged = pair[1]
    assert_equal_steps(decoder, pair, {"A": PROMPT, "B": [1, 2]})
    with pytest.raises(MemoryError):
        decoder.step(paged, {"B": [1, 2, 3], "A": [4]})
    if manager is Smallest:
        with pytest.raises(ManagerError, match="'B' was growing, and Smallest cannot roll back: release it"):
            decoder.step(paged, {"B": [1]})
    for sequences in pair:
        sequences.release("B")
    assert_equal_steps(decoder, pair, {"A": [5]})
    assert_equal_steps(decoder, pair, {"B": PROMPT[:4]})


@pytest.mark.parametrize("kind", ["contiguous", "paged"])
@pytest.mark.parametrize("failing_layer", [0, 1])
def test_a_step_that_fails_half_way_leaves_everything_as_it_was(kind, failing_layer, monkeypatch):
    decoder = small_decoder()
    contiguous, paged = pair = both(decoder, BlockManager(12, 4))
    assert_equal_steps(decoder, pair, {"A": PROMPT})
    for sequences in pair:
        sequences.fork("A", "C")
    before = snapshot(paged.manager, "AC")
    sequences = {"contiguous": contiguous, "paged": paged}[kind]
    with monkeypatch.context() as patch:
        original = decoder._heads

        def fail(h, weight):
            if weight is decoder.weights.layers[failing_layer].attn_v:
                raise RuntimeError("planted")
            return original(h, weight)

        patch.setattr(decoder, "_heads", fail)
        with pytest.raises(RuntimeError, match="planted"):
            decoder.step(sequences, {"A": [1], "C": [2, 3], "new": [4]})
    assert snapshot(paged.manager, "AC") == before
    assert sequences.request_ids() == ["A", "C"]
    assert_equal_steps(decoder, pair, {"A": [1], "C": [2, 3], "new": [4]})


def broken(**methods):
    manager = Smallest(8, 4)
    for name, method in methods.items():
        setattr(manager, name, method.__get__(manager))
    return manager


WRONG = [
    ({"append_slot": lambda self, r: (8, 0)}, "slot for 'A' is block 8 offset 0, which does not exist"),
    ({"append_slot": lambda self, r: (0, 4)}, "slot for 'A' is block 0 offset 4"),
    ({"append_slot": lambda self, r: (-1, 0)}, "slot for 'A' is block -1"),
    ({"append_slot": lambda self, r: None}, r"slot for 'A' is None, not \(block, offset\)"),
    ({"append_slot": lambda self, r: 3}, r"slot for 'A' is 3, not \(block, offset\)"),
    ({"append_slot": lambda self, r: (1.5, 0)}, r"slot for 'A' is \(1.5, 0\)"),
    (
        {"append_slot": lambda self, r: (0, 0)},
        "Block 0 offset 0 was given out twice in one step: to 'A' and",
    ),
    ({"block_table": lambda self, r: []}, r"block table of 'A' is \[\], but 7 tokens need 2 blocks of 4"),
    ({"block_table": lambda self, r: None}, "block table of 'A' is None, not a list of block ids"),
    ({"block_table": lambda self, r: [0, 99]}, r"block table of 'A' is \[0, 99\], but there is no block 99"),
    ({"block_table": lambda self, r: [0, None]}, "not a list of block ids"),
    (
        {"length": lambda self, r: self.lengths.get(r, 0) and 6},
        "says that 'A' has 6 tokens, but K and V of 7",
    ),
    ({"length": lambda self, r: 3}, "says that 'A' has 3 tokens, but K and V of 0"),
]


@pytest.mark.parametrize(("methods", "says"), WRONG)
def test_what_a_broken_manager_returns_ends_in_a_sentence(methods, says):
    decoder = small_decoder()
    paged = PagedSequences(decoder.config, broken(**methods))
    with pytest.raises(ManagerError, match=says):
        decoder.step(paged, {"A": PROMPT})


def test_an_object_that_is_no_manager_is_refused():
    with pytest.raises(TypeError, match="object is no block manager yet: it has no append_slot, release, "):
        PagedSequences(small_decoder().config, object())


def test_forking_needs_a_manager_that_can_and_a_free_name():
    decoder = small_decoder()
    paged = PagedSequences(decoder.config, Smallest(8, 4))
    decoder.step(paged, {"A": [1]})
    with pytest.raises(TypeError, match="Smallest has no fork"):
        paged.fork("A", "C")
    for sequences in both(decoder, BlockManager(8, 4)):
        decoder.step(sequences, {"A": [1], "B": [2]})
        with pytest.raises(ValueError, match="'B'"):
            sequences.fork("A", "B")
        with pytest.raises(KeyError, match="nobody"):
            sequences.fork("nobody", "C")
        with pytest.raises(KeyError, match="nobody"):
            sequences.release("nobody")
        assert sequences.request_ids() == ["A", "B"]
