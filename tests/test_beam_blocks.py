"""The blocks that a beam search holds: no more than its beams can share, none after it, and on SmolLM2."""

import pytest
from beam_run import PROMPT, assert_same, contiguous, paged, pairs, search
from models import QUESTION, small_decoder, smollm

from kvlab.beam_tables import carry_out
from kvlab.block_pool import OutOfBlocks
from kvlab.state import snapshot


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
