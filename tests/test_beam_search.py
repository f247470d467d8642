"""Beam search against an exhaustive search, transformers' beam search, and itself on copied caches."""

from functools import cache
from itertools import count, product

import pytest
import torch
from models import QUESTION, small_config, small_decoder, smollm, transformers_model

from kvlab.beam_search import BeamSearch
from kvlab.beam_tables import Moves, carry_out, plan_moves
from kvlab.block_manager import BlockManager
from kvlab.block_pool import OutOfBlocks
from kvlab.decoder import Decoder
from kvlab.faults import Patient
from kvlab.sequences import ContiguousSequences, PagedSequences
from kvlab.state import snapshot

PROMPT = [3, 14, 15, 9, 26, 5, 35]


def paged(decoder, num_blocks=120, block_size=4, **options):
    return PagedSequences(decoder.config, BlockManager(num_blocks, block_size, **options))


def contiguous(decoder):
    return ContiguousSequences(decoder.config)


def search(decoder, sequences, prompt=PROMPT, **changes):
    arguments = {"beam_width": 4, "max_new_tokens": 10, "stop_ids": [], **changes}
    return BeamSearch(decoder, sequences, prompt, **arguments)


def pairs(hypotheses):
    return [(list(one.tokens), one.score) for one in hypotheses]


def assert_same(found, expected, tolerance=1e-4):
    """Each a list of (tokens, score)."""
    assert [tokens for tokens, _ in found] == [tokens for tokens, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=tolerance)


# -- the moves on the tables --------------------------------------------------------------------------------


class Calls:
    def __init__(self):
        self.made = []

    def fork(self, parent, child):
        self.made.append(f"fork {parent} {child}")

    def release(self, beam):
        self.made.append(f"release {beam}")


@pytest.mark.parametrize(
    ("live", "parents", "expected"),
    [
        ("AB", "AA", Moves(["B"], [("A", "x0")], ["A", "x0"])),
        ("AB", "BA", Moves([], [], ["B", "A"])),
        ("ABC", "BAB", Moves(["C"], [("B", "x0")], ["B", "A", "x0"])),
        ("A", "AAA", Moves([], [("A", "x0"), ("A", "x1")], ["A", "x0", "x1"])),
        ("ABC", "CCC", Moves(["A", "B"], [("C", "x0"), ("C", "x1")], ["C", "x0", "x1"])),
        ("AB", "", Moves(["A", "B"], [], [])),
    ],
)
def test_moves_by_hand(live, parents, expected):
    moves = plan_moves(list(live), list(parents), (f"x{number}" for number in count()))
    assert moves == expected


def test_the_dead_go_first_and_nobody_is_released_that_is_forked():
    calls = Calls()
    carry_out(Moves(["B", "C"], [("A", "x0"), ("A", "x1")], ["A", "x0", "x1"]), calls)
    assert calls.made == ["release B", "release C", "fork A x0", "fork A x1"]


def test_a_survivor_of_nobody_is_refused():
    with pytest.raises(ValueError, match="beam 'Z' is not live"):
        plan_moves(["A"], ["Z"], iter("x"))


# -- what it finds ------------------------------------------------------------------------------------------


@torch.no_grad()
def every_continuation(decoder, prompt, max_new_tokens, stop_ids, length_penalty):
    """(tokens, score) of every possible end, best first: each text is fed whole, without a cache."""
    logs = {}
    for length in range(max_new_tokens):
        for tokens in product(range(decoder.config.vocab_size), repeat=length):
            logits = decoder.step(contiguous(decoder), {"x": [*prompt, *tokens]})["x"]
            logs[tokens] = logits.double().log_softmax(-1).tolist()
    ends = []
    for length in range(1, max_new_tokens + 1):
        for tokens in product(range(decoder.config.vocab_size), repeat=length):
            stops = [token in stop_ids for token in tokens]
            if not any(stops[:-1]) and (stops[-1] or length == max_new_tokens):
                total = sum(logs[tokens[:i]][tokens[i]] for i in range(length))
                ends.append((list(tokens), total / length**length_penalty))
    return sorted(ends, key=lambda end: -end[1])


@pytest.mark.parametrize("length_penalty", [0.0, 1.0, -0.5, 2.0])
@pytest.mark.parametrize("sequences", [contiguous, paged])
def test_a_beam_wide_enough_for_all_finds_what_an_exhaustive_search_finds(sequences, length_penalty):
    decoder = Decoder.random(small_config(vocab_size=5), seed=3)
    expected = every_continuation(decoder, [1, 4, 2], 3, {3}, length_penalty)
    assert len(expected) == 1 + 4 + 16 * 5
    found = search(
        decoder,
        sequences(decoder),
        [1, 4, 2],
        beam_width=81,
        max_new_tokens=3,
        stop_ids=[3],
        length_penalty=length_penalty,
    ).run(n=81)
    assert_same(pairs(found), expected[:81])
    assert {one.finished for one in found if one.tokens[-1] == 3} == {"stop"}
    assert {one.finished for one in found if one.tokens[-1] != 3} == {"length"}


@cache
def transformers_twin(seed):
    return transformers_model(small_decoder(seed=seed).weights)


@torch.no_grad()
def transformers_beams(seed, *, beam_width, max_new_tokens, stop_ids, length_penalty, early_stopping):
    model = transformers_twin(seed)
    ids = torch.tensor([PROMPT])
    out = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        num_beams=beam_width,
        num_return_sequences=beam_width,
        max_new_tokens=max_new_tokens,
        eos_token_id=stop_ids or None,
        pad_token_id=0,
        do_sample=False,
        length_penalty=length_penalty,
        early_stopping=early_stopping or "never",
        output_scores=True,
        return_dict_in_generate=True,
    )
    result = []
    for row, score in zip(
        out.sequences[:, len(PROMPT) :].tolist(), out.sequences_scores.tolist(), strict=True
    ):
        stop = next((i for i, token in enumerate(row) if token in stop_ids), len(row) - 1)
        result.append((row[: stop + 1], score))
    return result


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 2.0, -1.0])
@pytest.mark.parametrize(("beam_width", "stop_ids"), [(2, []), (3, [7, 30, 41]), (4, [*range(1, 12)])])
def test_it_finds_what_transformers_finds(beam_width, stop_ids, length_penalty, early_stopping):
    options = {
        "beam_width": beam_width,
        "max_new_tokens": 12,
        "stop_ids": stop_ids,
        "length_penalty": length_penalty,
        "early_stopping": early_stopping,
    }
    for seed in range(3):
        decoder = small_decoder(seed=seed)
        found = search(decoder, paged(decoder), **options).run(n=beam_width)
        assert_same(pairs(found), transformers_beams(seed, **options))


def test_a_width_of_one_is_greedy_and_needs_no_fork():
    decoder = small_decoder()
    (found,) = search(decoder, PagedSequences(decoder.config, SmallestManager(40, 4)), beam_width=1).run()
    ids = list(PROMPT)
    for _ in range(10):
        ids.append(int(decoder.step(contiguous(decoder), {"x": ids})["x"].argmax()))
    assert list(found.tokens) == ids[len(PROMPT) :]


class SmallestManager:
    """A manager that cannot fork."""

    def __init__(self, num_blocks, block_size):
        patient = Patient(num_blocks, block_size)
        self.num_blocks, self.block_size = num_blocks, block_size
        for name in ("append_slot", "release", "block_table", "length", "free_order"):
            setattr(self, name, getattr(patient, name))


# -- what it holds ------------------------------------------------------------------------------------------


def distinct_blocks(prompt, beams, block_size):
    """Blocks that the beams' fed tokens need at least: one for each different text up to a block's end."""
    texts = [(*prompt, *tokens) for tokens in beams]
    return len({text[: end + block_size] for text in texts for end in range(0, len(text), block_size)})


def least_blocks(record, block_size):
    """By step, the blocks while its tokens are fed, and after the dead are gone, by the rule above."""
    fed = [((),), *[tuple(b.tokens for b in step.beams) for step in record[:-1]]]
    while_fed = [distinct_blocks(PROMPT, beams, block_size) for beams in fed]
    kept = [distinct_blocks(PROMPT, [b.tokens[:-1] for b in step.beams], block_size) for step in record]
    return while_fed, kept


@pytest.mark.parametrize("block_size", [1, 2, 3, 4, 16])
@pytest.mark.parametrize("caching", [False, True])
def test_it_holds_the_least_blocks_that_its_beams_can_share(block_size, caching):
    decoder = small_decoder()
    reference = search(decoder, contiguous(decoder), max_new_tokens=12, stop_ids=[7, 30])
    expected = reference.run(n=4)
    while_fed, kept = least_blocks(reference.steps, block_size)
    # Exactly as many blocks as the beams need at the worst step: one too late a release would not fit.
    sequences = paged(decoder, max(while_fed), block_size, prefix_caching=caching)
    manager = sequences.manager
    run = search(decoder, sequences, max_new_tokens=12, stop_ids=[7, 30])
    block_bytes = sequences.cache.nbytes // manager.num_blocks
    for step in run:
        manager.check()
        assert manager.num_allocated == kept[step.step]
        assert step.bytes_held == kept[step.step] * block_bytes
    assert manager.num_free == manager.num_blocks and run.finished
    assert_same(pairs(run.hypotheses(4)), pairs(expected))
    assert sum(len(step.forked) for step in run.steps) > 10
    assert sum(len(step.released) for step in run.steps) > 6
    assert (sum(len(step.copies) for step in run.steps) > 3) == (block_size > 1)
    with pytest.raises(OutOfBlocks):
        search(
            decoder, paged(decoder, max(while_fed) - 1, block_size), max_new_tokens=12, stop_ids=[7, 30]
        ).run()


def test_releasing_the_dead_late_would_not_fit(monkeypatch):
    """The bug that the test above stands against."""
    decoder = small_decoder()
    reference = search(decoder, contiguous(decoder), max_new_tokens=12)
    reference.run()
    monkeypatch.setattr("kvlab.beam_search.carry_out", lambda moves, holder: carry_out(moves, Late(holder)))
    sequences = paged(decoder, max(least_blocks(reference.steps, 2)[0]), 2)
    with pytest.raises(OutOfBlocks):
        search(decoder, sequences, max_new_tokens=12).run()


class Late:
    """Lets the dead linger: it never releases them."""

    def __init__(self, holder):
        self.fork, self.release = holder.fork, lambda beam: None


def test_the_record_is_the_tree_of_the_beams():
    decoder = small_decoder()
    run = search(decoder, paged(decoder), max_new_tokens=12, stop_ids=range(1, 12))
    before = {"beam": ()}
    for step in run:
        for node in (*step.beams, *step.ended):
            assert node.tokens[:-1] == before[node.parent]
        children = {beam.request_id: beam.parent for beam in step.beams}
        assert {(parent, child) for child, parent in children.items() if child != parent} == set(step.forked)
        assert set(step.released) == set(before) - set(children.values())
        totals = [beam.log_probability for beam in step.beams]
        assert totals == sorted(totals, reverse=True)
        before = {beam.request_id: beam.tokens for beam in step.beams}
    assert before == {} and [step.step for step in run.steps] == list(range(len(run.steps)))
    assert any(step.ended for step in run.steps[:-1])


def test_a_full_pool_leaves_the_search_as_it_was():
    decoder = small_decoder()
    reference = search(decoder, contiguous(decoder))
    expected = reference.run(n=4)
    sequences = paged(decoder, 7 + max(least_blocks(reference.steps, 4)[0]) - 1)
    decoder.step(sequences, {"other": PROMPT * 4})  # 7 blocks
    run = search(decoder, sequences)
    with pytest.raises(OutOfBlocks):
        run.run()
    beams, books = run.beams, snapshot(sequences.manager, sequences.manager.request_ids())
    with pytest.raises(OutOfBlocks):
        run.step()
    assert run.beams == beams and snapshot(sequences.manager, sequences.manager.request_ids()) == books
    sequences.release("other")
    assert_same(pairs(run.run(n=4)), pairs(expected))


def test_a_search_given_up_releases_its_beams():
    decoder = small_decoder()
    sequences = paged(decoder)
    run = search(decoder, sequences)
    run.stop()
    run = search(decoder, sequences)
    run.step()
    run.step()
    assert len(sequences.request_ids()) == 4
    run.stop()
    assert run.finished and sequences.request_ids() == [] and sequences.manager.num_allocated == 0
    with pytest.raises(RuntimeError, match="is over"):
        run.step()


def test_names_in_use_are_passed_over():
    decoder = small_decoder()
    sequences = paged(decoder)
    decoder.step(sequences, {"beam.1": [1]})
    found = search(decoder, sequences)
    assert_same(pairs(found.run(n=4)), pairs(search(decoder, contiguous(decoder)).run(n=4)))
    assert sequences.request_ids() == ["beam.1"] and sequences.length("beam.1") == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"beam_width": 0}, "beam_width is 0"),
        ({"beam_width": 2.0}, "beam_width is 2.0"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"length_penalty": float("nan")}, "length_penalty is nan"),
        ({"prompt": []}, "brings no tokens"),
        ({"prompt": [99]}, "token id 99 is outside the vocabulary"),
        ({"prompt": [1] * 250}, "would hold 260 tokens"),
        ({"request_id": "taken"}, "'taken' is there already"),
    ],
)
def test_arguments_are_checked_at_once(changes, says):
    decoder = small_decoder()
    sequences = paged(decoder)
    decoder.step(sequences, {"taken": [1]})
    with pytest.raises(ValueError, match=says):
        search(decoder, sequences, **changes)
    assert sequences.request_ids() == ["taken"]


def test_what_cannot_be_is_refused():
    decoder = small_decoder()
    with pytest.raises(TypeError, match="SmallestManager has no fork"):
        search(decoder, PagedSequences(decoder.config, SmallestManager(8, 4)))
    for n in (0, 5):
        with pytest.raises(ValueError, match=f"n is {n}: a search of beam_width 4"):
            search(decoder, paged(decoder)).run(n=n)


# -- SmolLM2 ------------------------------------------------------------------------------------------------


def test_smollm_four_beams_of_64_tokens_equal_those_on_copied_caches(model_path):
    decoder = smollm(model_path)
    prompt = decoder.tokenizer.chat(QUESTION)  # 44 tokens
    runs = {}
    for name, sequences in (("paged", paged(decoder, 40, 16)), ("copied", contiguous(decoder))):
        run = search(decoder, sequences, prompt, max_new_tokens=64)
        runs[name] = run, sequences, run.run(n=4)
        assert len(run.steps) == 64
    (run, sequences, found), (copied, copies, expected) = runs["paged"], runs["copied"]
    assert_same(pairs(found), pairs(expected), tolerance=1e-3)
    for ours, theirs in zip(run.steps, copied.steps, strict=True):
        assert [beam[::3] for beam in ours.beams] == [beam[::3] for beam in theirs.beams]
        assert [beam.tokens for beam in ours.beams] == [beam.tokens for beam in theirs.beams]
    assert sequences.manager.num_free == 40
    held, held_copied = (max(step.bytes_held for step in r.steps) for r in (run, copied))
    assert held < held_copied and sequences.bytes_copied < copies.bytes_copied
    forks = sum(len(step.forked) for step in run.steps)
    block_copies = sum(len(step.copies) for step in run.steps)
    blocks = held // (sequences.cache.nbytes // 40)
    print(
        f"{forks} forks; at most {blocks} blocks, {held / 1e6:.1f} MB, against "
        f"{held_copied / 1e6:.1f} MB of whole caches; copied {sequences.bytes_copied / 1e6:.1f} MB in "
        f"{block_copies} block copies, against {copies.bytes_copied / 1e6:.1f} MB in whole caches"
    )
