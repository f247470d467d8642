"""The audit finds nothing in a million right writes, and says of each wrong slot what lies there instead."""

import random

import pytest
import torch
from sentinel_run import HEADS, LAYERS, Run

from kvlab import BlockManager, OutOfBlocks
from kvlab.kv_cache import PagedKVCache
from kvlab.kv_checks import KV_DTYPES
from kvlab.sentinel import SentinelWriter
from kvlab.sentinel_record import RECORD_LANES

# -- a million right writes ------------------------------------------------------------------------------

WRITES_PER_SIZE = 200_000
POOL_TOKENS = 24_000


@pytest.mark.parametrize(
    ("block_size", "dtype"), [*zip((1, 2, 3, 4, 16), (*KV_DTYPES, torch.float32), strict=True)]
)
def test_a_million_writes_without_a_mismatch(block_size, dtype):
    """200,000 tokens at each of five block sizes, over growth, forks, copy-on-write and releases in turns."""
    randomness = random.Random(block_size)
    manager = BlockManager(POOL_TOKENS // block_size, block_size, reuse=randomness.choice(["fifo", "lru"]))
    cache = PagedKVCache(LAYERS, manager.num_blocks, block_size, 1, RECORD_LANES, dtype=dtype)
    writer = SentinelWriter(cache)
    lengths, written, copies, audits, forks = {}, 0, 0, 0, 0
    while written < WRITES_PER_SIZE:
        action = randomness.random()
        if action < 0.85 or not lengths:
            request_id = randomness.choice([*lengths, randomness.randrange(200)])
            count = randomness.choice([1, 1, 3, 7, 64, 500, 900])
            try:
                growth = manager.append(request_id, count)
            except OutOfBlocks:
                victim = randomness.choice(sorted(lengths))
                manager.release(victim)
                writer.release(victim)
                del lengths[victim]
                continue
            cache.copy(growth.copies)
            writer.write_many(request_id, lengths.get(request_id, 0), growth.slots)
            lengths[request_id] = lengths.get(request_id, 0) + count
            written += count
            copies += len(growth.copies)
        elif action < 0.93:
            parent_id, child_id = randomness.choice(sorted(lengths)), randomness.randrange(200)
            if child_id not in lengths:
                manager.fork(parent_id, child_id)
                writer.fork(parent_id, child_id)
                lengths[child_id] = lengths[parent_id]
                forks += 1
        else:
            victim = randomness.choice(sorted(lengths))
            manager.release(victim)
            writer.release(victim)
            del lengths[victim]
        if written >= (audits + 1) * WRITES_PER_SIZE // 5:
            audits += 1
            assert writer.audit(manager) == []
    assert writer.audit(manager) == []
    assert forks > 5 and (copies > 5 or block_size == 1)
    # The audit was not blind: one lane changed in the last slot is one mismatch for each table that holds it.
    request_id = max(lengths, key=lengths.get)
    block, offset, _ = manager.translate(request_id, lengths[request_id] - 1)
    cache.v[1, block, offset, 0, 7] = 11
    holders = sum(block in manager.block_table(r) for r in lengths)
    assert len(writer.audit(manager)) == holders


@pytest.mark.parametrize("block_size", [1, 2, 3, 4, 16])
def test_single_tokens_in_turns_without_a_mismatch(block_size):
    run = Run(BlockManager(120, block_size))
    run.append("AABAB" * 5)
    run.fork("A", "C")
    run.append("CABC" * 4)
    run.release("B")
    run.append("DADC" * 3)
    assert run.audit() == []


# -- what a mismatch says --------------------------------------------------------------------------------


def test_the_sentence():
    run = Run(BlockManager(6, 4, free_order=[0, 2, 3, 1, 4, 5]), num_kv_heads=3)
    run.append("AAAAAAAA" + "BBB" + "AA")
    run.cache.k[0, 3, 1, 2] = run.cache.k[0, *run.manager.translate("B", 2)[:2], 2]
    block, offset, _ = run.manager.translate("A", 9)
    run.cache.k[0, block, offset, 2] = run.cache.k[0, *run.manager.translate("B", 2)[:2], 2]
    (mismatch,) = [m for m in run.audit() if m.request_id == "A"]
    assert str(mismatch) == f"block {block} slot {offset}, layer 0 head 2 K: expected A[9], found B[2]"


def test_stale_means_released_or_an_earlier_life_of_the_same_id():
    run = Run(BlockManager(1, 4))
    run.append("BBBB")
    run.release("B")
    run.append("A")
    run.manager.append("A", 1)  # A token that nobody writes.
    assert str(run.audit()[0]) == "block 0 slot 1, layer 0 head 0 K: expected A[1], found B[1] (stale)"
    run.release("A")
    run.append("B")
    run.manager.append("B", 3)
    found = {m.position: (m.expected, m.found, m.state) for m in run.audit()}
    assert found == {t: (f"B[{t}]", f"B[{t}]", "stale") for t in (1, 2, 3)}


def test_never_written_and_garbled():
    run = Run(BlockManager(2, 4), head_dim=32)
    run.append("AA")
    run.cache.k[0, 0, 0, 1] = 0
    run.cache.v[1, 0, 1, 0, 16:] = run.cache.v[1, 0, 0, 0, 16:].clone()
    sentences = [str(mismatch) for mismatch in run.audit()]
    assert sentences == [
        "block 0 slot 0, layer 0 head 1 K: expected A[0], found nothing (never written)",
        "block 0 slot 1, layer 1 head 0 V: expected A[1], found no whole record (garbled)",
    ]


@pytest.mark.parametrize("dtype", KV_DTYPES)
def test_nan_is_garbled(dtype):
    run = Run(BlockManager(2, 4), dtype=dtype)
    run.append("A")
    run.cache.k[1, 0, 0, 0, 3] = float("nan")
    assert [m.state for m in run.audit()] == ["garbled"]


def test_k_and_v_swapped_is_seen():
    run = Run(BlockManager(2, 4))
    run.append("A")
    run.cache.k, run.cache.v = run.cache.v, run.cache.k
    found = run.audit()
    assert len(found) == 2 * LAYERS * HEADS
    assert str(found[0]) == "block 0 slot 0, layer 0 head 0 K: expected A[0], found A[0] of layer 0 head 0 V"


def test_heads_swapped_is_seen():
    run = Run(BlockManager(2, 4))
    run.append("A")
    run.cache.k[0] = run.cache.k[0].flip(2)
    assert [m.found for m in run.audit()] == ["A[0] of layer 0 head 1 K", "A[0] of layer 0 head 0 K"]


def test_a_forks_sentence_names_the_table():
    run = Run(BlockManager(2, 4))
    run.append("AA")
    run.fork("A", "C")
    run.release("A")
    assert run.audit() == []
    run.cache.k[0, 0, 1, 0] = 0
    (mismatch,) = run.audit()
    assert "expected A[1] in C's table, found nothing (never written)" in str(mismatch)
    assert (mismatch.request_id, mismatch.position) == ("C", 1)


class Book:
    """The smallest manager, with whatever tables it is told."""

    def __init__(self, tables, lengths, num_blocks=4, block_size=2):
        self.tables, self.lengths = tables, lengths
        self.num_blocks, self.block_size = num_blocks, block_size

    def block_table(self, request_id):
        return self.tables[request_id]

    def length(self, request_id):
        return self.lengths[request_id]


def test_tables_that_name_no_slot_are_reported_not_followed():
    book = Book({"A": [1, -1, 9]}, {"A": 7})
    run = Run(book)
    run.writer.write_many("A", 0, [(1, 0), (1, 1)])
    sentences = [str(mismatch) for mismatch in run.audit()]
    assert sentences == [
        "A[2] has no slot: the table names block -1, the cache has blocks 0 to 3",
        "A[3] has no slot: the table names block -1, the cache has blocks 0 to 3",
        "A[4] has no slot: the table names block 9, the cache has blocks 0 to 3",
        "A[5] has no slot: the table names block 9, the cache has blocks 0 to 3",
        "A[6] has no slot: the table has no block for it",
    ]
    assert {m.state for m in run.audit()} == {"no slot"}


def test_a_release_that_the_writer_was_not_told_of():
    run = Run(BlockManager(2, 4))
    run.append("A")
    run.manager.release("A")
    with pytest.raises(ValueError, match=r"does not know request 'A'.*release\('A'\)"):
        run.audit()


# -- refusals --------------------------------------------------------------------------------------------


def writer(**sizes):
    sizes = {"num_layers": 1, "num_blocks": 4, "block_size": 2, "num_kv_heads": 1, "head_dim": 16, **sizes}
    return SentinelWriter(PagedKVCache(**sizes))


def test_a_head_too_narrow_for_a_record_is_refused():
    with pytest.raises(ValueError, match="head_dim 15 cannot hold a sentinel: one record needs 16 lanes"):
        writer(head_dim=15)


@pytest.mark.parametrize(("sizes", "name"), [({"num_layers": 257}, "layer"), ({"num_kv_heads": 257}, "head")])
def test_more_layers_or_heads_than_can_be_numbered_are_refused(sizes, name):
    with pytest.raises(ValueError, match=f"{name} 256 is too large for a sentinel: at most 255"):
        writer(**sizes)


@pytest.mark.parametrize(
    ("position", "slots", "sentence"),
    [
        (0, [(4, 0)], "block 4"),
        (-1, [(0, 0)], "position -1 is negative"),
        (16**5 - 1, [(0, 0), (0, 1)], "position 1048576 is too large"),
    ],
)
def test_a_refused_write_starts_no_request(position, slots, sentence):
    w = writer()
    with pytest.raises(ValueError, match=sentence):
        w.write_many("A", position, slots)
    with pytest.raises(KeyError, match="no sentinels of request 'A'"):
        w.release("A")
    assert not w.cache.k.any()


def test_fork_and_release_of_the_unknown():
    w = writer()
    w.write("A", 0, (0, 0))
    w.write("B", 0, (1, 0))
    with pytest.raises(KeyError, match="'C'"):
        w.fork("C", "D")
    with pytest.raises(ValueError, match=r"'A' onto 'B'.*live"):
        w.fork("A", "B")


def test_a_skipped_token_is_neither_written_nor_expected_of_anyone_else():
    w = writer()
    w.write_many("A", 0, [0, -1, 2])
    found = w.audit(Book({"A": [0, 1]}, {"A": 3}))
    assert {(m.position, m.state) for m in found} == {(1, "never written")}


# -- hits of a prefix cache ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", KV_DTYPES)
def test_a_hit_must_hold_what_it_found_also_when_its_writer_is_gone(dtype):
    w = writer(dtype=dtype)
    w.write_many("A", 0, [(1, 0), (1, 1), (0, 0)])
    assert w.hit("B", [(1, 0), (1, 1), (0, 0)]) == ["A", "A", "A"]
    book = Book({"B": [1, 0]}, {"B": 3})
    w.release("A")
    assert w.audit(book) == []
    w.write("C", 2, (0, 0))
    book = Book({"B": [1, 0], "C": []}, {"B": 3, "C": 0})
    assert {str(m).partition(": ")[2] for m in w.audit(book)} == {"expected A[2] in B's table, found C[2]"}


def test_a_hit_on_what_is_no_token_of_that_position_is_the_requests_own_and_named():
    w = writer()
    w.write_many("A", 0, [(1, 0), (1, 1)])
    w.cache.k[0, 1, 0, 0, 3] += 1
    assert w.hit("B", [(1, 0), (2, 0), (1, 1)]) == ["B", "B", "B"]  # garbled, never written, A's token 1
    found = w.audit(Book({"A": [1], "B": [1, 2, 1]}, {"A": 0, "B": 1}))
    assert {m.state for m in found} == {"garbled", "other"}
    with pytest.raises(ValueError, match="'B' cannot begin with a hit: that request is live"):
        w.hit("B", [(1, 0)])
