"""Prompts as tokens with a text each: SmolLM2's where the model is there, else one token a word."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32


class Token(NamedTuple):
    """One token: its id and the text to show for it."""

    id: int
    text: str


Tokenize = Callable[[str], list[Token]]


def words(text: str) -> list[Token]:
    """One token a word. A word that is a number is its own id, so that "1 2 3" are the tokens 1, 2 and 3."""
    return [Token(int(word) if _is_id(word) else crc32(word.encode()), word) for word in text.split()]


def spelled(ids: Sequence[int]) -> str:
    """A text whose `words` are these ids."""
    return " ".join(str(token_id) for token_id in ids)


@lru_cache(maxsize=1)
def smollm2() -> Tokenize | None:
    """The model's own tokens, or None where the model or the library `tokenizers` is missing."""
    from kvlab.checkpoint import GGUF, GGUFError, ModelNotFound, find_model
    from kvlab.tokenizer import Tokenizer

    try:
        tokenizer = Tokenizer.from_gguf(GGUF.open(find_model()))
    except (ModelNotFound, GGUFError, ImportError, OSError):
        return None

    def tokenize(text: str) -> list[Token]:
        ids = tokenizer.encode(text)
        return [Token(i, tokenizer.token_bytes(i).decode("utf-8", "replace") or "control") for i in ids]

    return tokenize


def _is_id(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 10
