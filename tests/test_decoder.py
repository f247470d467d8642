"""The decoder against transformers' Llama, against known tokens, and against itself without a cache."""

import pytest
import torch
from models import (
    ANSWER,
    QUESTION,
    small_config,
    small_decoder,
    smollm,
    transformers_logits,
    transformers_model,
)

from kvlab.checkpoint import GGUF, GGUFError
from kvlab.decoder import Decoder, rotate
from kvlab.sequences import ContiguousSequences
from kvlab.weights import unpermute

PROMPT = [3, 14, 15, 9, 26, 5, 35, 8, 9, 7]


def logits_of(decoder, ids):
    """Logits after the last of `ids`, all fed at once."""
    return decoder.step(ContiguousSequences(decoder.config, dtype=decoder.dtype), {"x": ids})["x"]


@pytest.mark.parametrize(("num_heads", "num_kv_heads"), [(2, 2), (6, 2), (4, 1)])
def test_small_models_equal_transformers(num_heads, num_kv_heads):
    decoder = small_decoder(num_heads, num_kv_heads)
    expected = transformers_logits(transformers_model(decoder.weights), PROMPT)  # [T, vocab]
    for end in range(1, len(PROMPT) + 1):
        found = logits_of(decoder, PROMPT[:end])
        assert (found - expected[end - 1]).abs().max() < 1e-5


@pytest.mark.parametrize("cuts", [[1] * 10, [10], [4, 6], [3, 1, 1, 5]])
def test_tokens_may_come_in_any_portions(cuts):
    decoder = small_decoder()
    sequences = ContiguousSequences(decoder.config)
    at = 0
    for cut in cuts:
        found = decoder.step(sequences, {"x": PROMPT[at : at + cut]})["x"]
        at += cut
        assert (found - logits_of(decoder, PROMPT[:at])).abs().max() < 1e-5
    assert sequences.length("x") == len(PROMPT)


def test_a_batch_mixes_prompts_and_single_tokens():
    decoder = small_decoder()
    sequences = ContiguousSequences(decoder.config)
    decoder.step(sequences, {"A": PROMPT[:4]})
    found = decoder.step(sequences, {"B": PROMPT[5:8], "A": [PROMPT[4]], "C": [1]})
    assert list(found) == ["B", "A", "C"]
    for request_id, ids in {"A": PROMPT[:5], "B": PROMPT[5:8], "C": [1]}.items():
        assert found[request_id].shape == (decoder.config.vocab_size,)
        assert (found[request_id] - logits_of(decoder, ids)).abs().max() < 1e-5


def test_bfloat16_weights_give_float32_logits_close_by():
    found = logits_of(small_decoder(dtype=torch.bfloat16), PROMPT)
    assert found.dtype == torch.float32
    difference = (found - logits_of(small_decoder(), PROMPT)).abs().max()
    assert 1e-6 < difference < 0.3


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        ({}, "at least one request"),
        ({"A": []}, "'A' brings no tokens"),
        ({"A": [50]}, "'A': token id 50 is outside the vocabulary, 0 to 49"),
        ({"A": [1], "B": [3, -1]}, "'B': token id -1 is outside"),
        ({"A": [1] * 257}, "'A' would hold 257 tokens; the model's context is 256"),
    ],
)
def test_bad_tokens_are_refused_before_anything_happens(tokens, says):
    decoder = small_decoder()
    sequences = ContiguousSequences(decoder.config)
    with pytest.raises(ValueError, match=says):
        decoder.step(sequences, tokens)
    assert sequences.request_ids() == []


def test_impossible_sizes_are_refused():
    with pytest.raises(ValueError, match="5 query heads do not divide over 2 KV heads"):
        small_config(5, 2)
    with pytest.raises(ValueError, match="head_dim is 7"):
        small_config(head_dim=7)


def test_rotation_depends_on_distance_only():
    q, k = torch.randn(2, 1, 1, 8).unbind()  # each [1, 1, 8]
    frequencies = 100.0 ** -(torch.arange(4) / 4)

    def score(query_at, key_at):
        a, b = query_at * frequencies, key_at * frequencies
        return (rotate(q, a.cos(), a.sin()) * rotate(k, b.cos(), b.sin())).sum()

    assert torch.isclose(score(9, 4), score(105, 100), atol=1e-4)
    assert not torch.isclose(score(9, 4), score(9, 5), atol=1e-4)


def test_unpermute_undoes_the_order_of_the_gguf_converter():
    """The converter's own line: reshape(heads, 2, rows / heads / 2, in).swapaxes(1, 2)."""
    weight = torch.arange(2 * 6 * 3.0).view(12, 3)  # 2 heads of 6 rows
    stored = weight.reshape(2, 2, 3, 3).swapaxes(1, 2).reshape(12, 3)
    assert not torch.equal(stored, weight)
    assert torch.equal(unpermute(stored, head_dim=6), weight)


def test_smollm_gives_the_known_answer(model_path):
    decoder = smollm(model_path)
    sequences = ContiguousSequences(decoder.config)
    feed, said = decoder.tokenizer.chat(QUESTION), []
    for _ in ANSWER:
        feed = [int(decoder.step(sequences, {"x": feed})["x"].argmax())]
        said += feed
    assert said == ANSWER
    assert decoder.tokenizer.decode(said[:8]) == "The capital of France is Paris."


def test_smollm_equals_transformers_at_every_position(model_path):
    decoder = smollm(model_path)
    ids = decoder.tokenizer.chat(QUESTION) + ANSWER[:6]
    expected = transformers_logits(transformers_model(decoder.weights), ids)  # [T, vocab]
    sequences = ContiguousSequences(decoder.config)
    start = len(ids) - 6
    assert (decoder.step(sequences, {"x": ids[:start]})["x"] - expected[start - 1]).abs().max() < 1e-3
    for at in range(start, len(ids)):
        found = decoder.step(sequences, {"x": [ids[at]]})["x"]
        assert (found - expected[at]).abs().max() < 1e-3


def test_smollm_with_permuted_rows_is_caught(model_path):
    """The planted bug of notebook 13: the answer is garbage, and not by a little."""
    right, wrong = smollm(model_path), Decoder.from_gguf(model_path, undo_permutation=False)
    ids = right.tokenizer.chat(QUESTION)
    difference = (logits_of(right, ids) - logits_of(wrong, ids)).abs().max()
    assert difference > 1
    assert int(logits_of(wrong, ids).argmax()) != ANSWER[0]


def test_smollm_config_and_size(model_path):
    decoder = smollm(model_path)
    c = decoder.config
    assert (c.num_layers, c.hidden_size, c.intermediate_size, c.vocab_size) == (30, 576, 1536, 49152)
    assert (c.num_heads, c.num_kv_heads, c.head_dim, c.context_length) == (9, 3, 64, 8192)
    assert (c.rope_base, round(c.rms_epsilon, 9)) == (100_000.0, 1e-5)
    layers = [tensor.numel() for layer in decoder.weights.layers for tensor in vars(layer).values()]
    assert round((sum(layers) + decoder.weights.embedding.numel()) / 1e6, 1) == 134.5
    assert decoder.stop_ids == (2,)


def test_another_kind_of_model_is_refused(model_path):
    gguf = GGUF.open(model_path)
    gguf.metadata["general.architecture"] = "mamba"
    with pytest.raises(GGUFError, match="'mamba'; only 'llama' is known"):
        Decoder.from_gguf(gguf)
    gguf.metadata["general.architecture"] = "llama"
    gguf.tensors["output.weight"] = gguf.tensors["token_embd.weight"]
    with pytest.raises(GGUFError, match="only tied embeddings"):
        Decoder.from_gguf(gguf)
    del gguf.metadata["llama.block_count"]
    with pytest.raises(GGUFError, match=r"no key 'llama.block_count'"):
        Decoder.from_gguf(gguf)
