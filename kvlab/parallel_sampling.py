"""Several continuations of one prompt: computed once, forked, and continued on shared blocks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from kvlab.decoder import Decoder
from kvlab.generation import Generator, StreamedToken


def sample_continuations(
    decoder: Decoder,
    sequences,
    prompt_ids: Sequence[int],
    n: int,
    *,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_p: float = 1.0,
    seed: int = 0,
    stop_ids: Iterable[int] | None = None,
    request_id: Hashable = "sample",
    release_finished: bool = True,
) -> Iterator[StreamedToken]:
    """Stream n continuations of one prompt, one token each a step.

    The prompt is computed once. Then n - 1 forks share its blocks; when the samples write their first own
    tokens, all but one copy the partial last block, and the last holder writes in place. Sample i draws the
    same tokens as the i-th of n requests that each compute the prompt for themselves.

    Args:
        n: how many; their requests are "request_id.0", "request_id.1", ...
        The others are `Generator`'s, and all are checked at once, before the first token is asked for.

    Raises:
        ValueError: an argument out of range, or an id in use. TypeError: the manager cannot fork.
    """
    if not isinstance(n, int) or n < 1:
        raise ValueError(f"n is {n!r}: it must be a whole number, at least 1.")
    generator = Generator(
        decoder,
        sequences,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_p=top_p,
        seed=seed,
        stop_ids=stop_ids,
        release_finished=release_finished,
    )
    generator.add_samples([f"{request_id}.{number}" for number in range(n)], prompt_ids)
    return iter(generator)
