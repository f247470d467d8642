"""The table of well-known models: each entry reads, has a source, and gives its published size."""

import pytest

from kvlab.model_shapes import MODELS, named_shape

BYTES_PER_TOKEN = {
    "opt-13b": 819_200,
    "llama-2-7b": 524_288,
    "llama-3.1-8b": 131_072,
    "llama-3.1-70b": 327_680,
    "smollm2-135m": 23_040,
    "qwen2.5-7b": 57_344,
    "mistral-7b-v0.1": 131_072,
    "gemma-2-9b": 344_064,
    "gpt-oss-20b": 49_152,
    "llama-4-scout": 196_608,
    "deepseek-v3": 70_272,
    "qwen3-next-80b": 24_576,
    "qwen3.5-4b": 32_768,
}


def test_every_entry_is_listed_here():
    assert set(BYTES_PER_TOKEN) == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_an_entry_has_its_size_and_a_source(name):
    shape = named_shape(name)
    assert shape.name == name
    assert shape.kv_bytes_per_token() == BYTES_PER_TOKEN[name]
    assert len(MODELS[name].source) > 20
    assert shape.plan(16).blocks_per_request(4096) > 0


def test_an_unknown_name_lists_the_table():
    assert named_shape(" Qwen2.5-7B ").num_layers == 28
    with pytest.raises(KeyError, match=r"There are: opt-13b"):
        named_shape("gpt-9")
