"""Forked samples come out as if each had computed the prompt alone, in fewer blocks and tokens."""

import pytest
from models import small_decoder, smollm

from kvlab.block_manager import BlockManager
from kvlab.block_pool import OutOfBlocks
from kvlab.faults import Patient
from kvlab.generation import Generator
from kvlab.parallel_sampling import sample_continuations
from kvlab.sequences import ContiguousSequences, PagedSequences

PROMPT = [3, 14, 15, 9, 26, 5, 35]


def contiguous(decoder):
    return ContiguousSequences(decoder.config)


def paged(decoder, num_blocks=60, block_size=4, **options):
    return PagedSequences(decoder.config, BlockManager(num_blocks, block_size, **options))


def by_request(stream):
    texts = {}
    for token in stream:
        texts.setdefault(token.request_id, []).append(token.token_id)
    return texts


def sample(decoder, sequences, n=4, prompt=PROMPT, **changes):
    arguments = {"max_new_tokens": 10, "seed": 5, "stop_ids": [], **changes}
    return sample_continuations(decoder, sequences, prompt, n, **arguments)


def one_by_one(decoder, n=4, **changes):
    """n requests that each compute the prompt for themselves, in caches of their own."""
    arguments = {"max_new_tokens": 10, "seed": 5, "temperature": 1.0, "stop_ids": [], **changes}
    generator = Generator(decoder, contiguous(decoder), **arguments)
    for number in range(n):
        generator.add(f"sample.{number}", PROMPT)
    return by_request(generator)


@pytest.mark.parametrize("sequences", [contiguous, paged])
@pytest.mark.parametrize("changes", [{}, {"stop_ids": [*range(10)]}, {"temperature": 0.7, "top_p": 0.8}])
def test_samples_equal_requests_that_compute_the_prompt_for_themselves(sequences, changes):
    decoder = small_decoder()
    expected = one_by_one(decoder, **changes)
    assert by_request(sample(decoder, sequences(decoder), **changes)) == expected
    assert len({tuple(tokens) for tokens in expected.values()}) == 4


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("block_size", [1, 4, 7, 16])
def test_the_prompt_is_computed_once_and_its_full_blocks_are_held_once(n, block_size):
    decoder, sequences = small_decoder(), paged(small_decoder(), 100, block_size)
    held, copies = [], []
    for token in sample(decoder, sequences, n, release_finished=False):
        if token.request_id == "sample.0":
            held.append(sequences.manager.num_allocated)
            copies.append(len(sequences.copies))
            sequences.manager.check()
    assert sequences.num_computed == len(PROMPT) + n * 9  # the last token of each is not fed
    partial = len(PROMPT) % block_size > 0
    assert copies == [0, (n - 1) * partial, *[0] * 8]
    full, total = len(PROMPT) // block_size, -(-(len(PROMPT) + 9) // block_size)
    assert held[0] == -(-len(PROMPT) // block_size)
    assert held[-1] == full + n * (total - full)


def test_a_sample_that_stops_gives_its_blocks_back_at_once():
    decoder, sequences = small_decoder(), paged(small_decoder())
    manager = sequences.manager
    for token in sample(decoder, sequences, stop_ids=[*range(10)]):
        if token.finished == "stop":
            assert token.request_id not in manager.request_ids()
            tables = [manager.block_table(request_id) for request_id in manager.request_ids()]
            assert manager.num_allocated == len({block for table in tables for block in table})
    assert manager.num_free == manager.num_blocks


def test_samples_and_other_requests_share_a_generator():
    decoder = small_decoder()
    generator = Generator(decoder, paged(decoder), max_new_tokens=6, temperature=1, seed=2)
    twin = Generator(decoder, contiguous(decoder), max_new_tokens=6, temperature=1, seed=2)
    generator.add("B", [1, 2])
    generator.add_samples("CD", PROMPT)
    generator.add_samples("EF", PROMPT)  # the same prompt, but another group
    for request_id in "BCDEF":
        twin.add(request_id, [1, 2] if request_id == "B" else PROMPT)
    assert by_request(generator) == by_request(twin)
    assert generator.sequences.num_computed == 2 + 7 + 7 + 5 * 5


def test_removing_the_first_sample_before_the_prompt_is_fed_leaves_the_others():
    decoder = small_decoder()
    expected = one_by_one(decoder)
    generator = Generator(decoder, paged(decoder), max_new_tokens=10, seed=5, temperature=1)
    generator.add_samples([f"sample.{number}" for number in range(4)], PROMPT)
    generator.remove("sample.0")
    del expected["sample.0"]
    assert by_request(generator) == expected


def test_a_full_pool_leaves_all_samples_as_they_were():
    decoder = small_decoder()
    sequences = paged(decoder, 9)
    decoder.step(sequences, {"other": PROMPT * 4 + [1]})  # 8 blocks, so that the prompt's 2 do not fit
    generator = Generator(decoder, sequences, max_new_tokens=3, seed=5, temperature=1)
    generator.add_samples([f"sample.{number}" for number in range(4)], PROMPT)
    with pytest.raises(OutOfBlocks):
        generator.step()
    assert sequences.request_ids() == ["other"]
    sequences.release("other")
    assert by_request(generator) == one_by_one(decoder, max_new_tokens=3)


def test_arguments_are_checked_at_once():
    decoder = small_decoder()
    sequences = paged(decoder)
    for n in (0, -1, 2.0):
        with pytest.raises(ValueError, match=f"n is {n}"):
            sample(decoder, sequences, n)
    decoder.step(sequences, {"sample.2": [1]})
    with pytest.raises(ValueError, match=r"'sample\.2' is there already"):
        sample(decoder, sequences)
    generator = Generator(decoder, sequences, max_new_tokens=4)
    with pytest.raises(ValueError, match="'A' is there already"):
        generator.add_samples("AA", PROMPT)
    assert generator.request_ids == []
    with pytest.raises(TypeError, match="NoFork has no fork"):
        sample(decoder, PagedSequences(decoder.config, NoFork()))


class NoFork:
    num_blocks, block_size = 8, 4

    def __init__(self):
        patient = Patient(8, 4)
        for name in ("append_slot", "release", "block_table", "length", "free_order"):
            setattr(self, name, getattr(patient, name))


def test_smollm_samples_share_the_prompts_blocks(model_path):
    decoder = smollm(model_path)
    prompt = decoder.tokenizer.chat("Name a colour.")
    expected = None
    for sequences in (paged(decoder, 40, 16), contiguous(decoder)):
        texts = by_request(sample(decoder, sequences, 3, prompt, max_new_tokens=6, temperature=0.8))
        assert expected in (None, texts)
        expected = texts
    assert len({tuple(tokens) for tokens in expected.values()}) > 1
