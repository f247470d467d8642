"""When a block falls behind the window: vLLM's run with W = 8, B = 4, and an oracle over the positions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.layer_kinds import Layer
from kvlab.window_blocks import blocks_for_a_hit, held_blocks, skipped_blocks, skipped_tokens


def test_as_run_on_vllm_with_a_window_of_8_and_blocks_of_4():
    freed = [skipped_blocks(computed, 8, 4) for computed in range(20)]
    assert [freed.index(n) for n in (1, 2, 3)] == [11, 15, 19]
    assert max(held_blocks(computed, 1, 8, 4) for computed in range(200)) == 3


def can_be_seen(position: int, computed: int, window: int, chunked: bool) -> bool:
    """Oracle: does the next token, at index `computed`, or a later one see this position?"""
    if chunked:
        return position // window >= computed // window
    return position > computed - window


@given(st.integers(0, 300), st.integers(1, 40), st.integers(1, 20), st.booleans())
def test_a_block_goes_when_none_of_its_tokens_can_be_seen(computed, window, block_size, chunked):
    gone = skipped_blocks(computed, window, block_size, chunked=chunked)
    hidden = [p for p in range(computed) if not can_be_seen(p, computed, window, chunked)]
    assert skipped_tokens(computed, window, chunked=chunked) == len(hidden)
    assert gone == len(hidden) // block_size


@given(st.integers(0, 400), st.integers(1, 30), st.integers(1, 40), st.integers(1, 20))
def test_the_bound_on_blocks_held(computed, new, window, block_size):
    layer = Layer("sliding", 1, 1, 1, window)
    assert held_blocks(computed, new, window, block_size) <= layer.blocks_for(computed + new, block_size, new)


def test_blocks_for_a_prefix_hit():
    assert [blocks_for_a_hit(window, 4) for window in (1, 2, 5, 6, 8, 9)] == [0, 1, 1, 2, 2, 2]


def test_nonsense_is_refused():
    for call in (
        lambda: skipped_tokens(-1, 4),
        lambda: skipped_tokens(4, 0),
        lambda: skipped_blocks(4, 4, 0),
        lambda: held_blocks(4, -1, 4, 4),
        lambda: blocks_for_a_hit(0, 4),
    ):
        with pytest.raises(ValueError, match=r"not|cannot"):
            call()
