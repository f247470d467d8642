"""Each planted fault, seen by the sentinel audit in exactly the slots that are wrong."""

import random

import pytest
from sentinel_run import HEADS, Run

from kvlab import BlockManager
from kvlab.faults import FAULTY_MANAGERS, EarlyFree, LostCopy, Patient, SwappedLayers

# -- wrong slots worked out by hand -------------------------------------------------------------------------


def test_off_by_one_block():
    """B = 3, A in blocks 0 and 2, B in block 1: token 3 of A goes to the front of block 0."""
    run = Run(FAULTY_MANAGERS["off-by-one block"](4, 3))
    run.append("ABABABA")
    assert run.manager.block_table("A") == [0, 2]
    run.append("A")
    assert run.findings() == {
        ("A", 0, 0, 0): ("A[0]", "A[3]", "other"),
        ("A", 3, 2, 0): ("A[3]", "nothing", "never written"),
    }


def test_wrong_remainder():
    """B = 3: tokens 0, 1, 2 of a block lie in slots 1, 2, 0."""
    run = Run(FAULTY_MANAGERS["wrong remainder"](4, 3))
    run.append("ABABAA")
    assert run.findings() == {
        ("A", 0, 0, 0): ("A[0]", "A[2]", "other"),
        ("A", 1, 0, 1): ("A[1]", "A[0]", "other"),
        ("A", 2, 0, 2): ("A[2]", "A[1]", "other"),
        ("A", 3, 2, 0): ("A[3]", "nothing", "never written"),
        ("B", 0, 1, 0): ("B[0]", "nothing", "never written"),
        ("B", 1, 1, 1): ("B[1]", "B[0]", "other"),
    }


def test_lost_copy():
    """B = 4: A and its fork share block 0 with 3 tokens; whoever appends first gets block 1, uncopied."""
    run = Run(LostCopy(4, 4))
    run.append("AAA")
    run.fork("A", "C")
    run.append("CA")
    assert run.manager.block_table("C") == [1] and run.manager.block_table("A") == [0]
    assert run.findings() == {
        ("C", 0, 1, 0): ("A[0]", "nothing", "never written"),
        ("C", 1, 1, 1): ("A[1]", "nothing", "never written"),
        ("C", 2, 1, 2): ("A[2]", "nothing", "never written"),
    }


def test_lost_copy_into_a_used_block_shows_stale_content():
    run = Run(LostCopy(2, 4))
    run.append("AAB")
    run.release("B")
    run.fork("A", "C")
    run.append("C")
    assert run.findings() == {
        ("C", 0, 1, 0): ("A[0]", "B[0]", "stale"),
        ("C", 1, 1, 1): ("A[1]", "nothing", "never written"),
    }


def test_early_free():
    """B = 2: A's release frees blocks 0 and 1, which its fork C holds; B overwrites three of their slots."""
    run = Run(EarlyFree(2, 2))
    run.append("AAAA")
    run.fork("A", "C")
    run.release("A")
    assert run.audit() == []
    run.append("BBB")
    assert run.findings() == {
        ("C", 0, 0, 0): ("A[0]", "B[0]", "other"),
        ("C", 1, 0, 1): ("A[1]", "B[1]", "other"),
        ("C", 2, 1, 0): ("A[2]", "B[2]", "other"),
    }


def test_late_length():
    """B = 2: every token lands on the one before it."""
    run = Run(FAULTY_MANAGERS["late length"](4, 2))
    run.append("ABAABA")
    assert run.manager.block_table("A") == [0, 2] and run.manager.block_table("B") == [1]
    assert run.findings() == {
        ("A", 0, 0, 0): ("A[0]", "A[1]", "other"),
        ("A", 1, 0, 1): ("A[1]", "A[2]", "other"),
        ("A", 2, 2, 0): ("A[2]", "A[3]", "other"),
        ("A", 3, 2, 1): ("A[3]", "nothing", "never written"),
        ("B", 0, 1, 0): ("B[0]", "B[1]", "other"),
        ("B", 1, 1, 1): ("B[1]", "nothing", "never written"),
    }


def test_swapped_layers():
    run = Run(BlockManager(4, 2), wrap=SwappedLayers, num_layers=3)
    run.append("AAB")
    expected = {
        (request_id, position, block, offset, layer, head, kind, f"of layer {1 - layer} head {head} {kind}")
        for request_id, position, block, offset in (("A", 0, 0, 0), ("A", 1, 0, 1), ("B", 0, 1, 0))
        for layer in (0, 1)
        for head in range(HEADS)
        for kind in "KV"
    }
    found = run.audit()
    assert {(m.request_id, m.position, *m[:5], m.found.partition(" ")[2]) for m in found} == expected
    assert len(found) == len(expected) and {m.state for m in found} == {"other"}


# -- wrong slots by a simulation in dicts ------------------------------------------------------------------


def random_operations(fault, seed):
    """Ids are used once. Forks only where the fault does not move their copies; one early free at most,
    of a fork's parent, since the books of a manager that frees early do not survive a second."""
    randomness = random.Random(seed)
    live, operations, parents = ["r0"], [("append", "r0")], []
    for number in range(1, 90):
        action = randomness.random()
        if action < 0.85:
            name = f"r{number}" if randomness.random() < 0.1 else randomness.choice(live)
            operations.append(("append", name))
        elif action < 0.95 and fault in (Patient, LostCopy, EarlyFree):
            parents.append(randomness.choice(live))
            name = f"r{number}"
            operations.append(("fork", parents[-1], name))
        elif fault is EarlyFree:
            if not parents or any(op[0] == "release" for op in operations):
                continue
            name = parents[-1]
            operations.append(("release", name))
        elif len(live) > 1:
            name = randomness.choice(live)
            operations.append(("release", name))
        else:
            continue
        if operations[-1][0] == "release":
            live.remove(name)
        elif name not in live:
            live.append(name)
    return operations


def wrong_slots_by_simulation(manager, operations):
    """What lies where, kept in dicts by following the manager's answers; then each table compared with it."""
    memory, tokens, size = {}, {}, manager.block_size
    for kind, *names in operations:
        if kind == "append":
            (name,) = names
            slot = manager.append_slot(name)
            if slot.copied_from is not None:
                for offset in range(slot.offset):
                    memory[slot.block, offset] = memory.get((slot.copied_from, offset))
            token = (name, len(tokens.setdefault(name, [])))
            tokens[name].append(token)
            memory[slot.block, slot.offset] = token
        elif kind == "fork":
            parent, child = names
            manager.fork(parent, child)
            tokens[child] = list(tokens[parent])
        else:
            manager.release(names[0])
            del tokens[names[0]]
    wrong = set()
    for name, contents in tokens.items():
        table = manager.block_table(name)
        for position, token in enumerate(contents):
            place = (table[position // size], position % size)
            if memory.get(place) != token:
                wrong.add((name, position, *place))
    return wrong


@pytest.mark.parametrize("block_size", [1, 2, 3, 4])
@pytest.mark.parametrize("fault", [Patient, *FAULTY_MANAGERS.values()], ids=lambda fault: fault.name)
def test_each_faulty_manager_at_random(fault, block_size):
    wrong_in_all = 0
    for seed in range(3):
        operations = random_operations(fault, seed)
        run = Run(fault(100, block_size, reuse="lru"))
        for kind, *names in operations:
            getattr(run, kind)(*([names] if kind == "append" else names))
        wrong = wrong_slots_by_simulation(fault(100, block_size, reuse="lru"), operations)
        assert set(run.findings()) == wrong
        wrong_in_all += len(wrong)
    # In blocks of 1 there is no remainder to get wrong and nothing to copy.
    harmless = fault is Patient or (block_size == 1 and fault.name in ("wrong remainder", "lost copy"))
    assert harmless == (wrong_in_all == 0)


def test_every_fault_has_a_name_and_a_symptom():
    for fault in (*FAULTY_MANAGERS.values(), SwappedLayers):
        assert fault.name and fault.symptom.endswith(".")
