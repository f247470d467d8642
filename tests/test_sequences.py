"""Paged against contiguous sequences, under one interface, with our manager and with others' objects."""

from contextlib import ExitStack, contextmanager
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from models import ANSWER, QUESTION, small_decoder, smollm

from kvlab.block_manager import BlockManager
from kvlab.block_pool import OutOfBlocks
from kvlab.manager_steps import ManagerError
from kvlab.prefill import causal_attention
from kvlab.sequences import ContiguousSequences, PagedSequences
from kvlab.state import snapshot

PROMPT = [3, 14, 15, 9, 26, 5, 35]


class Smallest:
    """The smallest manager anyone may write: plain tuples, no reserve, no fork."""

    def __init__(self, num_blocks, block_size):
        self.num_blocks, self.block_size = num_blocks, block_size
        self.free, self.tables, self.lengths = list(range(num_blocks)), {}, {}

    def append_slot(self, request_id):
        table = self.tables.setdefault(request_id, [])
        length = self.lengths.setdefault(request_id, 0)
        if length % self.block_size == 0:
            if not self.free:
                raise MemoryError("no block is free")
            table.append(self.free.pop(0))
        self.lengths[request_id] += 1
        return table[length // self.block_size], length % self.block_size

    def release(self, request_id):
        self.free += self.tables.pop(request_id)
        del self.lengths[request_id]

    def block_table(self, request_id):
        return self.tables[request_id]

    def length(self, request_id):
        return self.lengths[request_id]

    def free_order(self):
        return self.free


class OneByOne:
    """A BlockManager with its `reserve` and `append` hidden: forks and copies, but token by token."""

    def __init__(self, num_blocks, block_size):
        inner = BlockManager(num_blocks, block_size)
        self.num_blocks, self.block_size = num_blocks, block_size
        for name in ("append_slot", "release", "block_table", "length", "free_order", "fork"):
            setattr(self, name, getattr(inner, name))


MANAGERS = [BlockManager, Smallest, OneByOne]


def both(decoder, manager):
    return ContiguousSequences(decoder.config), PagedSequences(decoder.config, manager)


def assert_equal_steps(decoder, pair, tokens, tolerance=1e-5):
    expected, found = (decoder.step(sequences, tokens) for sequences in pair)
    assert list(found) == list(expected) == list(tokens)
    for request_id in tokens:
        assert (found[request_id] - expected[request_id]).abs().max() < tolerance
        assert pair[0].length(request_id) == pair[1].length(request_id)
    return found


def test_prefill_attention_equals_torch():
    q, k, v = torch.randn(3, 6, 8), torch.randn(7, 2, 8), torch.randn(7, 2, 8)  # T=3, L=7, Hq=6, Hkv=2, D=8
    mask = torch.ones(3, 7, dtype=torch.bool).tril(4)  # token i of the last 3 sees i + 5 tokens
    expected = torch.nn.functional.scaled_dot_product_attention(
        q.transpose(0, 1)[None],
        k.transpose(0, 1)[None],
        v.transpose(0, 1)[None],
        attn_mask=mask,
        enable_gqa=True,
    )
    assert torch.allclose(causal_attention(q, k, v), expected[0].transpose(0, 1), atol=1e-6)


@pytest.mark.parametrize("manager", MANAGERS)
@pytest.mark.parametrize("block_size", [1, 2, 3, 16])
@pytest.mark.parametrize(("num_heads", "num_kv_heads"), [(2, 2), (6, 2), (4, 1)])
def test_paged_equals_contiguous(manager, block_size, num_heads, num_kv_heads):
    decoder = small_decoder(num_heads, num_kv_heads)
    pair = both(decoder, manager(40, block_size))
    assert_equal_steps(decoder, pair, {"A": PROMPT, "B": [7]})
    for token in range(6):
        assert_equal_steps(decoder, pair, {"A": [token], "B": [token + 1]})
    assert_equal_steps(decoder, pair, {"C": PROMPT[2:], "B": [1, 2, 3], "A": [9]})
    for sequences in pair:
        sequences.release("A")
    assert_equal_steps(decoder, pair, {"A": PROMPT[:3], "B": [4]})


def test_every_layer_and_slot_holds_what_the_contiguous_cache_holds():
    decoder = small_decoder(6, 2)
    contiguous, paged = pair = both(decoder, BlockManager(9, 3, free_order=[7, 2, 5, 0, 1, 8, 3, 4, 6]))
    assert_equal_steps(decoder, pair, {"A": PROMPT, "B": PROMPT[:2]})
    assert_equal_steps(decoder, pair, {"A": [1], "B": [2]})
    for request_id in ("A", "B"):
        for layer in range(decoder.config.num_layers):
            expected = contiguous.caches[request_id].get(layer)
            table = paged.manager.block_table(request_id)
            found = paged.cache.gather(layer, table, paged.length(request_id))
            for name, ours, theirs in zip("kv", found, expected, strict=True):
                assert torch.allclose(ours, theirs, atol=1e-6), (request_id, layer, name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_dtypes(dtype):
    decoder = small_decoder(dtype=dtype)
    contiguous = ContiguousSequences(decoder.config, dtype=dtype)
    paged = PagedSequences(decoder.config, BlockManager(10, 4), dtype=dtype)
    tolerance = 1e-5 if dtype == torch.float32 else 0.1
    for tokens in (PROMPT, [1], [2], [3]):
        assert_equal_steps(decoder, (contiguous, paged), {"A": tokens}, tolerance)
    assert paged.cache.k.dtype == contiguous.caches["A"].dtype == dtype


@st.composite
def schedules(draw):
    """A few steps, forks and releases over four names, as ("step", {...}), ("fork", a, b), ("release", a)."""
    tokens = st.lists(st.integers(0, 49), min_size=1, max_size=4)
    names = st.sampled_from("ABCD")
    step = st.tuples(st.just("step"), st.dictionaries(names, tokens, min_size=1))
    fork = st.tuples(st.just("fork"), names, names)
    release = st.tuples(st.just("release"), names)
    return draw(st.lists(st.one_of(step, step, step, fork, release), max_size=10))


@settings(max_examples=60)
@given(schedule=schedules(), block_size=st.sampled_from([1, 2, 3, 4]), manager=st.sampled_from(MANAGERS[::2]))
def test_any_schedule_gives_the_same_logits(schedule, block_size, manager):
    decoder = small_decoder()
    pair = both(decoder, manager(60 * 4 // block_size, block_size))
    live = set()
    for operation, *arguments in schedule:
        if operation == "step":
            assert_equal_steps(decoder, pair, arguments[0])
            live |= set(arguments[0])
        elif operation == "fork" and arguments[0] in live and arguments[1] not in live:
            for sequences in pair:
                sequences.fork(*arguments)
            live.add(arguments[1])
        elif operation == "release" and arguments[0] in live:
            for sequences in pair:
                sequences.release(*arguments)
            live -= set(arguments)
    assert set(pair[0].request_ids()) == set(pair[1].request_ids()) == live


@pytest.mark.parametrize("manager", [BlockManager, OneByOne])
def test_a_fork_with_its_own_continuation_leaves_the_other_bit_equal(manager):
    decoder = small_decoder()
    alone, forked = (PagedSequences(decoder.config, manager(20, 4)) for _ in range(2))
    for sequences in (alone, forked):
        decoder.step(sequences, {"A": PROMPT})  # 7 tokens: the second block is partial, so it will be copied
    forked.fork("A", "C")
    for token in range(8):
        decoder.step(forked, {"C": [token + 20]})
        expected = decoder.step(alone, {"A": [token]})["A"]
        assert torch.equal(decoder.step(forked, {"A": [token]})["A"], expected)
    assert forked.manager.block_table("A")[0] == forked.manager.block_table("C")[0]
    assert forked.manager.block_table("A")[1] != forked.manager.block_table("C")[1]


@pytest.mark.parametrize("manager", [BlockManager, OneByOne])
@pytest.mark.parametrize("first", "AC")
def test_whichever_of_a_fork_writes_first_both_equal_their_contiguous_twins(manager, first):
    decoder = small_decoder()
    pair = both(decoder, manager(20, 4))
    assert_equal_steps(decoder, pair, {"A": PROMPT})
    for sequences in pair:
        sequences.fork("A", "C")
    assert_equal_steps(decoder, pair, {first: [11]})
    assert_equal_steps(decoder, pair, {"A": [12, 13], "C": [14]})


@pytest.mark.parametrize("manager", [BlockManager, OneByOne])
def test_all_copies_of_a_step_are_one_call(manager):
    """Two families of forks share partial blocks of 3 and 1 tokens: one copy for each member but the last."""
    decoder = small_decoder()
    contiguous, paged = pair = both(decoder, manager(20, 4))
    assert_equal_steps(decoder, pair, {"A": PROMPT, "B": PROMPT[:1]})
    for sequences in pair:
        for parent, child in ("AC", "AD", "BE"):
            sequences.fork(parent, child)
    calls, copy = [], paged.cache.copy
    paged.cache.copy = lambda copies: calls.append(list(copies)) or copy(copies)
    assert paged.bytes_held == 3 * paged.cache.nbytes // 20
    assert_equal_steps(decoder, pair, {name: [1, 2] for name in "ABCDE"})
    assert calls == [paged.copies] and [copy.num_slots for copy in paged.copies] == [3, 1, 3]
    token_bytes = paged.cache.nbytes // (20 * 4)
    assert paged.bytes_copied == 7 * token_bytes
    assert contiguous.bytes_copied == (7 + 7 + 1) * token_bytes
    assert contiguous.bytes_held == (3 * 9 + 2 * 3) * token_bytes
    assert_equal_steps(decoder, pair, {"A": [1]})
    assert paged.copies == [] and len(calls) == 2


def test_a_lost_copy_would_be_seen():
    """The bug that the fork test stands against: without the copy the child's context has a hole."""
    decoder = small_decoder()
    contiguous, paged = pair = both(decoder, BlockManager(20, 4))
    assert_equal_steps(decoder, pair, {"A": PROMPT})
    paged.cache.copy = lambda copies: None
    for sequences in pair:
        sequences.fork("A", "C")
    expected, found = (decoder.step(sequences, {"C": [1]})["C"] for sequences in (contiguous, paged))
    assert (found - expected).abs().max() > 1e-2


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


# -- SmolLM2 ------------------------------------------------------------------------------------------------

QUESTIONS = {"A": QUESTION, "B": "Why is the sky blue?"}
BLOCK_SIZES = [1, 2, 3, 16]


class SideBySide:
    """Several caches in one decoder step, each with requests of its own: the weights are read once for all.

    A request is (member, request id of that member).
    """

    def __init__(self, members):
        self.members = members

    def length(self, request):
        return self.members[request[0]].length(request[1])

    @contextmanager
    def step(self, tokens):
        own = {member: {} for member in self.members}
        for (member, request_id), ids in tokens.items():
            own[member][request_id] = ids
        with ExitStack() as stack:
            yield SideBySideBatch(
                [stack.enter_context(self.members[member].step(own[member])) for member in self.members]
            )


class SideBySideBatch:
    def __init__(self, batches):
        self.batches, self.sizes = batches, [sum(batch.counts) for batch in batches]
        self.counts = [count for batch in batches for count in batch.counts]
        self.token_ids = [token for batch in batches for token in batch.token_ids]
        self.positions = torch.cat([batch.positions for batch in batches])

    def write(self, layer, k, v):
        for batch, *own in zip(self.batches, k.split(self.sizes), v.split(self.sizes), strict=True):
            batch.write(layer, *own)

    def attend(self, layer, q):
        parts = zip(self.batches, q.split(self.sizes), strict=True)
        return torch.cat([batch.attend(layer, own) for batch, own in parts])


@cache
def decode_64_steps(path):
    """Greedy tokens and logits of both questions, interleaved, in each cache: {cache: ([64, 2], [64, 2, V])}.

    Every cache is fed the tokens that its own logits chose.
    """
    decoder = smollm(path)
    members = {"contiguous": ContiguousSequences(decoder.config)}
    for size in BLOCK_SIZES:
        members[size] = PagedSequences(decoder.config, BlockManager(240 // size + 2, size))
    prompts = {name: decoder.tokenizer.chat(text) for name, text in QUESTIONS.items()}
    feed = {(member, name): ids for member in members for name, ids in prompts.items()}
    together = SideBySide(members)
    logits = {member: [] for member in members}
    for _ in range(64):
        found = decoder.step(together, feed)
        feed = {request: [int(found[request].argmax())] for request in found}
        for member in members:
            logits[member].append(torch.stack([found[member, name] for name in QUESTIONS]))  # [2, V]
    for size in BLOCK_SIZES:
        members[size].manager.check()
    stacked = {member: torch.stack(steps) for member, steps in logits.items()}  # [64, 2, V]
    return {member: (steps.argmax(-1), steps) for member, steps in stacked.items()}


@pytest.mark.parametrize("block_size", BLOCK_SIZES)
def test_smollm_paged_equals_contiguous_at_each_of_64_steps(model_path, block_size):
    runs = decode_64_steps(model_path)
    (expected_tokens, expected), (tokens, logits) = runs["contiguous"], runs[block_size]
    assert torch.equal(tokens, expected_tokens)
    assert tokens[:32, 0].tolist() == ANSWER
    difference = (logits - expected).abs().amax(dim=(1, 2))  # [64]
    assert difference.max() < 1e-3, f"step {int(difference.argmax())}: {float(difference.max())}"
    print(f"B={block_size}: largest logit difference {float(difference.max()):.1e}")


def test_smollm_fork_leaves_the_other_bit_equal(model_path):
    """A's logits with a fork C that goes its own way, against A's logits without C: no bit differs."""
    decoder = smollm(model_path)
    prompt = decoder.tokenizer.chat(QUESTIONS["A"])  # 44 tokens: the third block of 16 is partial
    runs = []
    for with_fork in (False, True):
        sequences = PagedSequences(decoder.config, BlockManager(16, 16))
        feed, logits = prompt, []
        for step in range(6):
            if with_fork and step == 1:
                sequences.fork("A", "C")
            if with_fork and step:
                decoder.step(sequences, {"C": decoder.tokenizer.encode(" no")})
            logits.append(decoder.step(sequences, {"A": feed})["A"])
            feed = [int(logits[-1].argmax())]
        runs.append(torch.stack(logits))
    assert torch.equal(*runs)


class Tampered:
    """A manager whose table of "try" comes out with the entries of `replace`: planted, and undone."""

    def __init__(self, manager):
        self._manager, self.replace = manager, {}

    def __getattr__(self, name):
        return getattr(self._manager, name)

    def block_table(self, request_id):
        table = self._manager.block_table(request_id)
        for entry, block in self.replace.items() if request_id == "try" else ():
            table[entry] = block
        return table


def test_smollm_a_swapped_table_entry_changes_the_logits_and_undoing_it_restores_them(model_path):
    """An entry swapped for another request's block, or with the partial last block, is seen at once.

    Two full blocks of one request swapped are not: K carries its position in its rotation, and attention is a
    sum over positions, which has no order.
    """
    decoder = smollm(model_path)
    manager = Tampered(BlockManager(16, 16))
    sequences = PagedSequences(decoder.config, manager)
    decoder.step(sequences, {name: decoder.tokenizer.chat(text) for name, text in QUESTIONS.items()})
    (a0, a1, a2), (b0, *_) = manager.block_table("A"), manager.block_table("B")

    def logits(replace):
        sequences.fork("A", "try")
        manager.replace = replace
        found = decoder.step(sequences, {"try": [ANSWER[0]]})["try"]
        manager.replace = {}
        sequences.release("try")
        return found

    right = logits({})
    assert (logits({1: b0}) - right).abs().max() > 0.1
    assert (logits({1: a2, 2: a1}) - right).abs().max() > 0.1
    assert (logits({0: a1, 1: a0}) - right).abs().max() < 1e-3
    assert torch.equal(logits({}), right)
