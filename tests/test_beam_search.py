"""Beam search against an exhaustive search, transformers' beam search, and itself on copied caches."""

from functools import cache
from itertools import product

import pytest
import torch
from beam_run import PROMPT, assert_same, contiguous, paged, pairs, search
from models import small_config, small_decoder, transformers_model

from kvlab.decoder import Decoder
from kvlab.faults import Patient
from kvlab.sequences import PagedSequences


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
