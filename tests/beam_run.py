"""A beam search on a small model, paged or contiguous, and the comparison of what two of them find."""

import pytest

from kvlab.beam_search import BeamSearch
from kvlab.block_manager import BlockManager
from kvlab.sequences import ContiguousSequences, PagedSequences

PROMPT = [3, 14, 15, 9, 26, 5, 35]


def paged(decoder, num_blocks=120, block_size=4, **options):
    return PagedSequences(decoder.config, BlockManager(num_blocks, block_size, **options))


def contiguous(decoder):
    return ContiguousSequences(decoder.config)


def search(decoder, sequences, prompt=PROMPT, **changes):
    arguments = {"beam_width": 4, "max_new_tokens": 10, "stop_ids": [], **changes}
    return BeamSearch(decoder, sequences, prompt, **arguments)


def pairs(hypotheses):
    return [(list(one.tokens), one.score) for one in hypotheses]


def assert_same(found, expected, tolerance=1e-4):
    """Each a list of (tokens, score)."""
    assert [tokens for tokens, _ in found] == [tokens for tokens, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=tolerance)
