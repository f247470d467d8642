"""SmolLM2 on paged and on contiguous sequences: the same logits, and what a wrong table does to them."""

from contextlib import ExitStack, contextmanager
from functools import cache

import pytest
import torch
from models import ANSWER, QUESTION, smollm

from kvlab.block_manager import BlockManager
from kvlab.sequences import ContiguousSequences, PagedSequences

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
