"""The model's tokenizer, built from the GGUF metadata: byte-level BPE with digits split one by one."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kvlab.checkpoint import GGUF, GGUFError

# from the chat template inside SmolLM2's GGUF file
DEFAULT_SYSTEM_PROMPT = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
START, END = "<|im_start|>", "<|im_end|>"
CONTROL_TOKEN = 3  # value of tokenizer.ggml.token_type for tokens that are no text


def byte_alphabet() -> dict[str, int]:
    """Byte-level BPE spells each byte as one printable character; this maps that character to the byte.

    Printable bytes spell themselves, the others take the characters from U+0100 on, in order (GPT-2's table).
    """
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


class Tokenizer:
    """Text to token ids and back. Build it with `from_gguf`."""

    def __init__(self, tokens: Sequence[str], merges: Sequence[str], control: Iterable[int], eos_id: int):
        try:
            import tokenizers
        except ImportError:
            raise ModuleNotFoundError(
                "The tokenizer needs the library `tokenizers`: run `make lab`, or `pip install tokenizers`."
            ) from None
        pairs = [tuple(merge.split(" ")) for merge in merges]
        vocabulary = {token: i for i, token in enumerate(tokens)}
        self._backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=pairs))
        self._backend.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
            [
                tokenizers.pre_tokenizers.Digits(individual_digits=True),
                tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False),
            ]
        )
        self.control_ids = frozenset(control)
        self._backend.add_special_tokens([tokens[i] for i in sorted(self.control_ids)])
        self.tokens = list(tokens)
        self.eos_id = eos_id
        self._byte_of = byte_alphabet()

    @classmethod
    def from_gguf(cls, gguf: GGUF) -> Tokenizer:
        """Raises GGUFError when the file holds no tokenizer, or one of another kind."""
        kind = (gguf.value("tokenizer.ggml.model"), gguf.value("tokenizer.ggml.pre"))
        if kind != ("gpt2", "smollm"):
            raise GGUFError(
                f"{gguf.path.name}: the tokenizer is {kind}; only SmolLM's ('gpt2', 'smollm') is known."
            )
        types = gguf.value("tokenizer.ggml.token_type")
        return cls(
            gguf.value("tokenizer.ggml.tokens"),
            gguf.value("tokenizer.ggml.merges"),
            (i for i, token_type in enumerate(types) if token_type == CONTROL_TOKEN),
            gguf.value("tokenizer.ggml.eos_token_id"),
        )

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`. Control tokens such as <|im_end|> are recognised when they are spelled out.

        Six control characters and the unassigned planes of Unicode have no token and are left out.
        """
        return self._backend.encode(text, add_special_tokens=False).ids

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token stands for; none for a control token. It may hold half a character."""
        if not 0 <= token_id < len(self.tokens):
            raise ValueError(f"token id {token_id} is outside the vocabulary of {len(self.tokens)}.")
        if token_id in self.control_ids:
            return b""
        return bytes(self._byte_of[character] for character in self.tokens[token_id])

    def decode(self, token_ids: Iterable[int]) -> str:
        """The text of `token_ids`, without control tokens; bytes that are not UTF-8 become U+FFFD."""
        return b"".join(self.token_bytes(token_id) for token_id in token_ids).decode(
            "utf-8", errors="replace"
        )

    def stream(self) -> TextStream:
        """A decoder for tokens that arrive one at a time."""
        return TextStream(self)

    def chat(self, messages: str | Sequence[Mapping[str, Any]]) -> list[int]:
        """Token ids of a conversation in ChatML, ending where the assistant's answer begins.

        `messages` is a list of {"role": ..., "content": ...}, or one string: what the user says. SmolLM2's
        own system prompt comes first unless the first message has the role "system".
        """
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        if not messages:
            raise ValueError("The conversation is empty: give at least one message.")
        if messages[0]["role"] != "system":
            messages = [{"role": "system", "content": DEFAULT_SYSTEM_PROMPT}, *messages]
        turns = [f"{START}{message['role']}\n{message['content']}{END}\n" for message in messages]
        return self.encode("".join(turns) + f"{START}assistant\n")


class TextStream:
    """Turns tokens into text as they come, and holds back the bytes of a character until it is complete."""

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token_id: int) -> str:
        """The text that is complete now that this token is here; often one word, sometimes nothing."""
        return self._decoder.decode(self._tokenizer.token_bytes(token_id))

    def finish(self) -> str:
        """What was held back: U+FFFD if the text stops inside a character, else nothing."""
        return self._decoder.decode(b"", final=True)
