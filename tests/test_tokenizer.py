"""The tokenizer against known ids, the file's own chat template, and the library's decoder."""

from functools import cache

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders

from kvlab.checkpoint import GGUF, GGUFError
from kvlab.tokenizer import Tokenizer, byte_alphabet

QUESTION = "What is the capital of France? Tell me one fact about it."


@cache
def opened(path):
    gguf = GGUF.open(path)
    return gguf, Tokenizer.from_gguf(gguf)


@pytest.fixture
def tokenizer(model_path):
    return opened(model_path)[1]


def test_known_ids(tokenizer):
    ids = tokenizer.chat(QUESTION)
    assert len(ids) == 44
    assert ids[:4] == [1, 9690, 198, 2683]
    assert tokenizer.decode([504, 3575, 282, 4649, 314, 7042, 30, 2]) == "The capital of France is Paris."
    assert tokenizer.eos_id == 2


def test_digits_are_split_one_by_one(tokenizer):
    assert [tokenizer.decode([i]) for i in tokenizer.encode("a 2048")] == ["a", " ", "2", "0", "4", "8"]


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": QUESTION}],
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Hello 猫"},
            {"role": "user", "content": " two\nlines "},
        ],
    ],
)
def test_chat_is_the_template_in_the_file(model_path, messages):
    gguf, tokenizer = opened(model_path)
    template = jinja2.Template(gguf.value("tokenizer.chat_template"))
    rendered = template.render(messages=messages, add_generation_prompt=True)
    assert tokenizer.chat(messages) == tokenizer.encode(rendered)


def test_one_string_is_what_the_user_says(tokenizer):
    assert tokenizer.chat("Hi") == tokenizer.chat([{"role": "user", "content": "Hi"}])
    with pytest.raises(ValueError, match="at least one message"):
        tokenizer.chat([])


def test_control_tokens_are_no_text(tokenizer):
    assert tokenizer.encode("<|im_end|>") == [2]
    assert tokenizer.token_bytes(2) == b""
    assert tokenizer.decode([1, *tokenizer.encode("a"), 2]) == "a"


def test_a_foreign_id_is_refused(tokenizer):
    with pytest.raises(ValueError, match="49152 is outside the vocabulary of 49152"):
        tokenizer.decode([49152])
    with pytest.raises(ValueError, match="-1 is outside"):
        tokenizer.token_bytes(-1)


@given(text=st.text(st.characters(exclude_categories=["Cc", "Cn", "Co", "Cs"])))
def test_encoding_loses_nothing(model_path, text):
    tokenizer = opened(model_path)[1]
    if "<|" not in text:
        assert tokenizer.decode(tokenizer.encode(text)) == text


@given(ids=st.lists(st.integers(0, 49151), max_size=20))
def test_decoding_equals_the_library_and_streams_the_same(model_path, ids):
    tokenizer = opened(model_path)[1]
    library = tokenizer._backend
    library.decoder = decoders.ByteLevel()
    text = tokenizer.decode(ids)
    assert text == library.decode(ids, skip_special_tokens=True)
    stream = tokenizer.stream()
    assert "".join(stream.push(i) for i in ids) + stream.finish() == text


def test_a_stream_holds_back_half_a_character(tokenizer):
    ids = tokenizer.encode("naïve 🦊 猫!")
    assert len(tokenizer.encode("🦊")) > 1, "a character must be cut into several tokens"
    stream = tokenizer.stream()
    pieces = [stream.push(i) for i in ids]
    assert "".join(pieces) == "naïve 🦊 猫!"
    assert "\ufffd" not in "".join(pieces)
    assert "" in pieces
    cut = tokenizer.stream()
    assert cut.push(tokenizer.encode("🦊")[0]) == ""
    assert cut.finish() == "\ufffd"


def test_the_byte_alphabet_is_one_to_one():
    alphabet = byte_alphabet()
    assert sorted(alphabet.values()) == list(range(256))
    assert alphabet["A"] == 65
    assert alphabet["Ġ"] == ord(" ")


def test_another_tokenizer_is_refused(model_path, monkeypatch):
    gguf = GGUF.open(model_path)
    gguf.metadata["tokenizer.ggml.model"] = "llama"
    with pytest.raises(GGUFError, match="only SmolLM's"):
        Tokenizer.from_gguf(gguf)
    del gguf.metadata["tokenizer.ggml.model"]
    with pytest.raises(GGUFError, match=r"no key 'tokenizer.ggml.model'"):
        Tokenizer.from_gguf(gguf)
