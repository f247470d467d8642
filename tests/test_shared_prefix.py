"""Skipped prefill: exactly the shared whole blocks, and the same logits as without a cache."""

from statistics import median

import pytest
from models import small_decoder, smollm

from kvlab.block_manager import BlockManager
from kvlab.prefix_cache import ExtraKeys
from kvlab.sequences import ContiguousSequences, PagedSequences
from kvlab.shared_prefix import prefill_in_turn

SYSTEM = [(7 * i) % 50 for i in range(21)]
ENDINGS = {"A": [1, 2, 3], "B": [4], "C": [1, 2, 3, 4, 5]}
PROMPTS = {name: SYSTEM + ending for name, ending in ENDINGS.items()}


def paged(decoder, num_blocks=80, block_size=4, *, caching=True, **options):
    manager = BlockManager(num_blocks, block_size, prefix_caching=caching)
    return PagedSequences(decoder.config, manager, **options)


def largest_difference(some, others):
    pairs = zip(some, others, strict=True)
    return max(float((one.logits - other.logits).abs().max()) for one, other in pairs)


@pytest.mark.parametrize(
    ("block_size", "cached"), [(1, [0, 21, 24]), (4, [0, 20, 24]), (7, [0, 21, 21]), (16, [0, 16, 16])]
)
def test_whole_shared_blocks_are_skipped_and_nothing_else(block_size, cached):
    """C shares 24 tokens with A, whose last block of 24 is full at block sizes 1 and 4."""
    decoder = small_decoder()
    sequences = paged(decoder, block_size=block_size)
    found = prefill_in_turn(decoder, sequences, PROMPTS)
    assert [one.num_cached for one in found] == cached
    assert [one.num_tokens for one in found] == [24, 22, 26]
    assert sequences.num_computed == sum(one.num_computed for one in found) == 72 - sum(cached)
    for one in found:
        alone = decoder.step(ContiguousSequences(decoder.config), {"x": PROMPTS[one.request_id]})["x"]
        assert (one.logits - alone).abs().max() < 1e-5


def test_without_caching_everything_is_computed():
    decoder = small_decoder()
    found = prefill_in_turn(decoder, paged(decoder, caching=False), PROMPTS)
    assert [one.num_cached for one in found] == [0, 0, 0]


def test_decoding_goes_on_over_blocks_that_others_filled():
    """A is gone and B and C hold its blocks; each token's logits equal those of a cache of its own."""
    decoder = small_decoder()
    sequences, alone = paged(decoder), ContiguousSequences(decoder.config)
    prefill_in_turn(decoder, sequences, PROMPTS)
    decoder.step(alone, PROMPTS)
    sequences.release("A")
    for token in range(9):
        feed = {"B": [token], "C": [token + 3]}
        expected, found = decoder.step(alone, feed), decoder.step(sequences, feed)
        for name in feed:
            assert (found[name] - expected[name]).abs().max() < 1e-5
        sequences.manager.check()


def test_a_prompt_after_everybody_has_gone_still_hits():
    decoder = small_decoder()
    sequences = paged(decoder)
    (first,) = prefill_in_turn(decoder, sequences, {"A": PROMPTS["A"]})
    sequences.release("A")
    assert sequences.manager.num_allocated == 0
    (again,) = prefill_in_turn(decoder, sequences, {"A": PROMPTS["A"]})
    assert (first.num_cached, again.num_cached) == (0, 20)
    assert (again.logits - first.logits).abs().max() < 1e-5


def test_a_hit_on_what_was_evicted_would_give_other_logits():
    """Blocks that were handed out again are not found; put back into the cache, they give wrong logits."""
    decoder = small_decoder()
    sequences = paged(decoder, 9)
    (first,) = prefill_in_turn(decoder, sequences, {"A": PROMPTS["A"]})
    links = [(b, sequences.manager.prefix_cache.link(b)) for b in sequences.manager.block_table("A")]
    sequences.release("A")
    prefill_in_turn(decoder, sequences, {"B": [9] * 36})
    sequences.release("B")
    (missed,) = prefill_in_turn(decoder, sequences, {"A": PROMPTS["A"]})
    assert missed.num_cached == 0 and (missed.logits - first.logits).abs().max() < 1e-5
    sequences.release("A")
    prefill_in_turn(decoder, sequences, {"B": [8] * 36})
    sequences.release("B")
    for block, link in links:
        sequences.manager.prefix_cache.add(block, link)
    (wrong,) = prefill_in_turn(decoder, sequences, {"A": PROMPTS["A"]})
    assert wrong.num_cached == 20 and (wrong.logits - first.logits).abs().max() > 1e-2


def test_another_salt_shares_nothing():
    decoder = small_decoder()
    sequences = paged(decoder)
    sequences.extra_keys = {"B": ExtraKeys(salt="tenant"), "C": ExtraKeys(salt="tenant")}
    assert [one.num_cached for one in prefill_in_turn(decoder, sequences, PROMPTS)] == [0, 0, 20]


# -- SmolLM2 ------------------------------------------------------------------------------------------------

QUESTIONS = (
    "What is the capital of France?",
    "Why is the sky blue?",
    "Name three colours.",
    "How far away is the moon?",
    "Who wrote Hamlet?",
    "What is the boiling point of water?",
    "Translate 'good morning' into Spanish.",
    "What is 7 times 8?",
)
ADVICE = "You are a patient teacher. Answer in one short sentence, and say so when you do not know. "


def smollm_prompts(tokenizer):
    """Eight questions after one system prompt, whose first 200 tokens are the same in all."""
    system = tokenizer.encode("<|im_start|>system\n" + ADVICE * 12)[:200]
    assert len(system) == 200
    ask = "<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
    return {f"Q{i}": system + tokenizer.encode(ask.format(text)) for i, text in enumerate(QUESTIONS)}


def longest_shared(prompts, block_size):
    """By prompt: tokens in whole blocks that an earlier one begins with too, the last token left out."""
    shared = []
    for number, ids in enumerate(prompts):
        lengths = [0]
        for other in prompts[:number]:
            same = [a == b for a, b in zip(ids[:-1], other, strict=False)]
            lengths.append((same.index(False) if False in same else len(same)) // block_size * block_size)
        shared.append(max(lengths))
    return shared


def test_smollm_eight_questions_compute_a_200_token_system_prompt_once(model_path):
    decoder = smollm(model_path)
    prompts = smollm_prompts(decoder.tokenizer)
    runs = [
        prefill_in_turn(decoder, paged(decoder, 200, 16, caching=caching), prompts)
        for caching in (False, True)
    ]
    without, cached = runs
    expected = longest_shared(list(prompts.values()), 16)
    # 200 tokens are 12 whole blocks; two that begin with the same words share a 13th with an earlier one.
    assert expected[0] == 0 and set(expected[1:]) == {192, 208}
    assert [one.num_cached for one in cached] == expected
    difference = largest_difference(without, cached)
    assert difference < 1e-3
    assert [int(one.logits.argmax()) for one in cached] == [int(one.logits.argmax()) for one in without]
    slow, fast = (median(one.seconds for one in run[1:]) for run in runs)
    print(
        f"tokens computed: {sum(one.num_computed for one in without)} without, "
        f"{sum(one.num_computed for one in cached)} with the cache; time to first token, median of 7: "
        f"{slow * 1e3:.0f} ms without, {fast * 1e3:.0f} ms with; largest logit difference {difference:.1e}"
    )
