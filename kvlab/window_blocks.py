"""Which blocks a window leaves behind: the arithmetic that a manager needs to give them back at once.

Blocks are given back whole, so a block goes when the last of its tokens has left the window. In the table
the null block takes its place, so that the position of the others does not change.
"""

from kvlab.layer_kinds import ceil_div


def skipped_tokens(computed: int, window: int, *, chunked: bool = False) -> int:
    """Leading tokens that no later token of this layer can see, once `computed` tokens are done.

    Sliding: max(0, computed - W + 1), because the next token sees itself and W - 1 before it.
    Chunked: computed // W * W, because a new chunk sees nothing of the ones before.
    Source: vLLM, get_num_skipped_tokens of SlidingWindowManager and ChunkedLocalAttentionManager.
    """
    if computed < 0 or window < 1:
        raise ValueError(
            f"computed must be at least 0 and the window at least 1, not {computed} and {window}."
        )
    return computed // window * window if chunked else max(0, computed - window + 1)


def skipped_blocks(computed: int, window: int, block_size: int, *, chunked: bool = False) -> int:
    """Leading blocks that are behind the window and can be given back: skipped tokens // B."""
    if block_size < 1:
        raise ValueError(f"block_size must be at least 1 token, not {block_size}.")
    return skipped_tokens(computed, window, chunked=chunked) // block_size


def held_blocks(computed: int, new: int, window: int, block_size: int, *, chunked: bool = False) -> int:
    """Blocks held while `new` tokens join `computed` ones: ceil((computed + new) / B) - skipped blocks.

    Never more than ceil((W - 1 + new) / B) + 1 for a sliding window, whatever the length.
    """
    if new < 0:
        raise ValueError(f"The number of new tokens cannot be negative, but is {new}.")
    return ceil_div(computed + new, block_size) - skipped_blocks(
        computed, window, block_size, chunked=chunked
    )


def blocks_for_a_hit(window: int, block_size: int) -> int:
    """Contiguous cached blocks that a sliding-window layer needs for a prefix hit: ceil((W - 1) / B).

    Source: vLLM, SlidingWindowManager: they are searched from the right, the longest prefix first.
    """
    if window < 1 or block_size < 1:
        raise ValueError(f"window and block_size must be at least 1, not {window} and {block_size}.")
    return ceil_div(window - 1, block_size)
