"""Logits of a whole text in one pass, and what float8 K and V do to them: KL and top-1 agreement, printed."""

import math

import pytest
import torch

from kvlab import ContiguousSequences, Decoder
from kvlab.quantization_error import divergence, quantised_store, quantization_error
from kvlab.text_logits import text_logits
from kvlab.weights import DecoderConfig

TEXT = (
    "The lighthouse stood at the end of the long stone pier, and every evening the keeper climbed its "
    "one hundred and twelve steps. He carried a lamp, a book and a small loaf of bread. From the top he "
    "could see the fishing boats come home, one after another, until only the dark water was left. In "
    "winter the wind was so strong that the glass trembled, but the light never went out. When people "
    "asked him whether he was lonely, he laughed and said that a thousand sailors knew his name."
)
CALIBRATION = (
    "A balanced diet contains fruit, vegetables, grains and protein. Doctors recommend to drink water "
    "during the day and to sleep for eight hours. In 1969 two astronauts walked on the Moon, while a "
    "third one waited in orbit above them. def add(a, b): return a + b"
)


def small_decoder() -> Decoder:
    fields = {
        "num_layers": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 4, "num_kv_heads": 2,
        "head_dim": 8, "vocab_size": 50, "context_length": 64, "rms_epsilon": 1e-5, "rope_base": 10_000.0,
    }  # fmt: skip
    return Decoder.random(DecoderConfig(**fields), seed=1)


def test_one_pass_gives_the_logits_of_a_decode_loop():
    decoder, ids = small_decoder(), [3, 17, 8, 8, 41, 0, 29]
    sequences = ContiguousSequences(decoder.config)
    loop = torch.stack([decoder.step(sequences, {"A": [token]})["A"] for token in ids])  # [T, vocab]
    torch.testing.assert_close(text_logits(decoder, ids), loop, atol=1e-5, rtol=1e-5)


def test_a_quantised_pass_gives_the_logits_of_a_decode_loop_over_the_same_cache():
    """A loop, token by token: it writes to float8 and attends through `QuantizedKVCache.decode`."""
    decoder, ids = small_decoder(), [3, 17, 8, 8, 41, 0, 29]
    samples = {}
    text_logits(decoder, ids, lambda layer, k, v: samples.setdefault(layer, (k, v)))
    _, stored = quantised_store(samples, "head", len(ids), block_size=4)
    whole = text_logits(decoder, ids, stored)
    cache, _ = quantised_store(samples, "head", len(ids), block_size=4)
    loop = [decoder.step(_Loop(cache, t), {"A": [token]})["A"] for t, token in enumerate(ids)]
    torch.testing.assert_close(whole, torch.stack(loop), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(whole, text_logits(decoder, ids), atol=1e-4)


class _Loop:
    """The decoder's view of one request of `length` tokens in blocks 0, 1, ... of a quantised cache."""

    def __init__(self, cache, length):
        self.cache, self._length = cache, length
        self.counts, self.positions = [1], torch.tensor([length])

    def length(self, request_id):
        return self._length

    def step(self, tokens):
        self.token_ids = tokens["A"]
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def write(self, layer, k, v):
        self.cache.write(layer, [divmod(self._length, 4)], k, v)

    def attend(self, layer, q):
        table = torch.arange(self.cache.num_blocks, dtype=torch.int32)[None]  # [S, max_blocks]
        return self.cache.decode(layer, q, table, torch.tensor([self._length + 1]), backend="reference")


def test_the_divergence_of_known_distributions():
    p, q = torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([[0.25, 0.75], [0.5, 0.5]])
    tiny = 1e-300
    got = divergence((p.double() + tiny).log(), (q.double() + tiny).log())
    assert got.tolist() == pytest.approx([0.5 * math.log(4 / 3), math.log(2)])
    assert divergence(q.log(), q.log()).tolist() == [0, 0]


def test_the_price_on_smollm2(model_path, capsys):
    """Measured once: KL 0.0055 / 0.0053 / 0.0060 nats, top-1 97 / 95 / 93 % (scale 1, a layer, a head)."""
    decoder = Decoder.from_gguf(model_path)
    ids, calibration = decoder.tokenizer.encode(TEXT), decoder.tokenizer.encode(CALIBRATION)
    rows = quantization_error(decoder, ids, calibration)
    with capsys.disabled():
        print(f"\nSmolLM2-135M with float8 K and V, {len(ids)} positions:")
        for row in rows:
            print(
                f"  scale by {row.scaling:5}: KL {row.kl:.4f} nats (worst {row.worst_kl:.3f}), "
                f"top-1 {row.top1:.1%}, {row.saturated} saturated"
            )
    assert [row.scaling for row in rows] == ["none", "layer", "head"]
    for row in rows:
        assert 0.001 < row.kl < 0.02
        assert row.top1 >= 0.88
    assert rows[0].saturated == 0


def test_unknown_scalings_and_empty_texts_are_refused():
    with pytest.raises(ValueError, match="scalings are none, layer, head, not channel"):
        quantization_error(small_decoder(), [1], [1], ["channel"])
    with pytest.raises(ValueError, match="at least one token"):
        quantization_error(small_decoder(), [], [1])
