"""What paging saves, if not bytes per token: the copy at every step, and the second copy of a prefix."""

from typing import NamedTuple


class CopyCost(NamedTuple):
    """Growing a contiguous cache by one token: bytes moved, bytes held at the peak, seconds (or None)."""

    bytes_moved: int
    peak_bytes: int
    seconds: float | None


def grow_by_copy(length: int, bytes_per_token: int, bandwidth: float | None = None) -> CopyCost:
    """What it costs to add one token to a contiguous cache of `length` tokens by copying it whole.

    bytes moved = length * bytes a token; at the peak the old and the new cache exist together, so
    (length + length + 1) * bytes a token; seconds = bytes moved / `bandwidth` (bytes a second).
    Source: `torch.cat([old, new])` allocates the result before the old tensor can be freed. A paged cache
    moves nothing: it writes into the next slot.
    """
    if length < 0 or bytes_per_token < 0:
        raise ValueError(
            f"Lengths and bytes cannot be negative: length {length}, bytes a token {bytes_per_token}."
        )
    if bandwidth is not None and not bandwidth > 0:
        raise ValueError(f"A bandwidth must be above 0 bytes a second, but is {bandwidth}.")
    moved = length * bytes_per_token
    return CopyCost(moved, moved + (length + 1) * bytes_per_token, moved / bandwidth if bandwidth else None)


class PrefixSaving(NamedTuple):
    """A prefix that several requests share: bytes counted once per request, stored, and saved."""

    counted_bytes: int
    stored_bytes: int
    saved_bytes: int
    shared_tokens: int


def shared_prefix(tokens: int, num_requests: int, bytes_per_token: int, block_size: int = 1) -> PrefixSaving:
    """Bytes saved when `num_requests` requests share a prefix of `tokens` tokens.

    Only whole blocks are shared: shared = tokens // B * B. Counted by every request it would be
    shared * requests * bytes a token; it is stored once, so (requests - 1) / requests of that is saved.
    """
    if tokens < 0 or num_requests < 1 or bytes_per_token < 0 or block_size < 1:
        raise ValueError(
            f"A shared prefix needs tokens >= 0, requests >= 1 and block_size >= 1, but has tokens {tokens}, "
            f"requests {num_requests}, bytes a token {bytes_per_token}, block_size {block_size}."
        )
    shared = tokens // block_size * block_size
    stored = shared * bytes_per_token
    return PrefixSaving(stored * num_requests, stored, stored * (num_requests - 1), shared)
