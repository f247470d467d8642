"""Sampling, stopping, streaming and interleaving; each request must come out as if it were alone."""

import pytest
import torch
from models import QUESTION, small_decoder, smollm

from kvlab.block_manager import BlockManager
from kvlab.block_pool import OutOfBlocks
from kvlab.generation import Generator, Sampler, generate
from kvlab.sequences import ContiguousSequences, PagedSequences

PROMPTS = {"A": [3, 14, 15, 9, 26], "B": [5, 35, 8]}


def contiguous(decoder):
    return ContiguousSequences(decoder.config)


def paged(decoder, num_blocks=40, block_size=4):
    return PagedSequences(decoder.config, BlockManager(num_blocks, block_size))


def tokens_of(stream, request_id="A"):
    return [token.token_id for token in stream if token.request_id == request_id]


def greedy_by_hand(decoder, prompt, count):
    """Feed the whole text again for every token: no cache carries over."""
    ids = list(prompt)
    for _ in range(count):
        ids.append(int(decoder.step(contiguous(decoder), {"x": ids})["x"].argmax()))
    return ids[len(prompt) :]


@pytest.mark.parametrize("sequences", [contiguous, paged])
def test_greedy_interleaved_equals_each_alone_without_a_cache(sequences):
    decoder = small_decoder()
    stream = list(generate(decoder, sequences(decoder), PROMPTS, max_new_tokens=8))
    assert [(token.step, token.request_id) for token in stream] == [(i, r) for i in range(8) for r in "AB"]
    for request_id, prompt in PROMPTS.items():
        assert tokens_of(stream, request_id) == greedy_by_hand(decoder, prompt, 8)
    assert all(token.token_id == int(token.logits.argmax()) for token in stream)
    assert [token.finished for token in stream] == [None] * 14 + ["length"] * 2


def test_a_stop_token_ends_one_request_and_its_blocks_come_back():
    decoder, sequences = small_decoder(), paged(small_decoder())
    whole = list(generate(decoder, contiguous(decoder), PROMPTS, max_new_tokens=8))
    of_a, of_b = tokens_of(whole, "A"), tokens_of(whole, "B")
    stop = next(token for token in of_a if token not in of_b)
    stream = list(generate(decoder, sequences, PROMPTS, max_new_tokens=8, stop_ids=[stop]))
    last = [token for token in stream if token.request_id == "A"][-1]
    assert (last.token_id, last.finished, last.text) == (stop, "stop", "")
    assert tokens_of(stream, "A") == of_a[: of_a.index(stop) + 1]
    assert tokens_of(stream, "B") == of_b
    assert sequences.request_ids() == []
    assert sequences.manager.num_free == 40


def test_finished_requests_may_be_kept_to_look_at():
    decoder, sequences = small_decoder(), paged(small_decoder())
    list(generate(decoder, sequences, PROMPTS, max_new_tokens=3, release_finished=False))
    assert [sequences.length(request_id) for request_id in "AB"] == [
        5 + 2,
        3 + 2,
    ]  # the last token is not fed
    assert sequences.manager.block_table("A") == [0, 1]


def test_sampling_repeats_with_its_seed_and_does_not_depend_on_company():
    decoder = small_decoder()

    def run(prompts, seed):
        return list(
            generate(decoder, contiguous(decoder), prompts, max_new_tokens=12, temperature=1, seed=seed)
        )

    both = run(PROMPTS, 0)
    assert tokens_of(both) == tokens_of(run(PROMPTS, 0))
    assert tokens_of(both) == tokens_of(run({"A": PROMPTS["A"]}, 0))
    assert tokens_of(both) != tokens_of(run(PROMPTS, 1))
    same_prompt = run({"A": PROMPTS["A"], "B": PROMPTS["A"]}, 0)
    assert tokens_of(same_prompt, "A") != tokens_of(same_prompt, "B")


def test_samples_follow_the_probabilities():
    probabilities = torch.tensor([0.5, 0.3, 0.15, 0.05])
    sampler = Sampler(temperature=2.0, seed=3)
    drawn = torch.tensor([sampler.choose(probabilities.log() * 2) for _ in range(4000)]).bincount(minlength=4)
    assert (drawn / 4000 - probabilities).abs().max() < 0.03


def test_top_p_keeps_the_smallest_set_that_reaches_it():
    logits = torch.tensor([0.05, 0.5, 0.15, 0.3]).log()
    for top_p, kept in ((0.4, {1}), (0.51, {1, 3}), (0.79, {1, 3}), (0.9, {1, 2, 3}), (1.0, {0, 1, 2, 3})):
        sampler = Sampler(temperature=1.0, top_p=top_p)
        assert {sampler.choose(logits) for _ in range(300)} == kept


def test_a_low_temperature_is_nearly_greedy_and_logits_stay_as_they_were():
    logits = torch.randn(50, generator=torch.Generator().manual_seed(1))
    before = logits.clone()
    sampler = Sampler(temperature=0.01, top_p=0.9)
    assert {sampler.choose(logits) for _ in range(20)} == {int(logits.argmax())}
    assert Sampler().choose(logits) == int(logits.argmax())
    assert torch.equal(logits, before)


def test_a_request_may_join_while_others_decode():
    decoder = small_decoder()
    generator = Generator(decoder, paged(decoder), max_new_tokens=6)
    generator.add("A", PROMPTS["A"])
    stream = generator.step() + generator.step()
    generator.add("B", PROMPTS["B"])
    assert generator.request_ids == ["A", "B"]
    stream += list(generator)
    for request_id, prompt in PROMPTS.items():
        assert tokens_of(stream, request_id) == greedy_by_hand(decoder, prompt, 6)
    assert [token.step for token in stream if token.request_id == "B"] == list(range(2, 8))
    assert generator.step() == []
    generator.add("A", PROMPTS["A"])  # the name is free again
    assert tokens_of(generator) == tokens_of(stream)


def test_after_a_full_pool_the_others_go_on():
    decoder = small_decoder()
    sequences = paged(decoder, num_blocks=4)
    generator = Generator(decoder, sequences, max_new_tokens=7)
    for request_id, prompt in PROMPTS.items():
        generator.add(request_id, prompt)
    stream = []
    with pytest.raises(OutOfBlocks):
        while True:
            stream += generator.step()
    generator.remove("B")
    stream += list(generator)
    assert tokens_of(stream) == greedy_by_hand(decoder, PROMPTS["A"], 7)
    assert sequences.manager.num_free == 4
    with pytest.raises(KeyError, match="'B' is not running"):
        generator.remove("B")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
        ({"max_new_tokens": 2.5}, r"max_new_tokens is 2.5"),
        ({"temperature": -1}, "temperature is -1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_p": 0}, "top_p is 0"),
        ({"top_p": 1.1}, r"top_p is 1.1"),
        ({"prompts": {}}, "nothing to generate"),
        ({"prompts": {"A": []}}, "'A' brings no tokens"),
        ({"prompts": {"A": [99]}}, "'A': token id 99 is outside the vocabulary"),
        ({"prompts": {"A": [1] * 250}}, "'A' would hold 260 tokens; the model's context is 256"),
    ],
)
def test_arguments_are_checked_at_once(changes, says):
    decoder = small_decoder()
    arguments = {"prompts": PROMPTS, "max_new_tokens": 10, **changes}
    with pytest.raises(ValueError, match=says):
        generate(decoder, contiguous(decoder), **arguments)


def test_a_name_in_use_is_refused():
    decoder = small_decoder()
    sequences = contiguous(decoder)
    decoder.step(sequences, {"A": [1]})
    with pytest.raises(ValueError, match="'A' is there already"):
        generate(decoder, sequences, PROMPTS, max_new_tokens=1)


def test_smollm_streams_its_answer_and_stops_by_itself(model_path):
    decoder = smollm(model_path)
    prompts = {"A": decoder.tokenizer.chat(QUESTION)}
    stream = list(generate(decoder, paged(decoder, block_size=16), prompts, max_new_tokens=20))
    assert "".join(token.text for token in stream) == "The capital of France is Paris."
    assert [token.text for token in stream][:3] == ["The", " capital", " of"]
    assert stream[-1].finished == "stop" and stream[-1].token_id == 2
