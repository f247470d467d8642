"""The PagedAttention paper's figure on parallel sampling, and the assumptions under which we compute it.

Source: Kwon et al., arXiv:2309.06180, figure 15 (memory saved, Alpaca) and figure 11 (mean lengths).
The paper gives means only. The spread is an assumption: lognormal, with a standard deviation of 1.32 times
the mean for prompts and 1.1 times for outputs.
"""

from __future__ import annotations

from math import exp, log, sqrt
from statistics import NormalDist

SAVED = {2: 0.0609, 4: 0.0853, 6: 0.0979}
PROMPT, OUTPUT = (19.31, 1.32), (58.45, 1.1)
BLOCK_SIZE = 16


def lengths(mean: float, spread: float, count: int = 200) -> list[int]:
    """`count` lengths at the middle of equally likely parts of a lognormal, in whole tokens, at least 1.

    Args:
        mean: mean length.
        spread: standard deviation divided by the mean.
    """
    normal = _log_lengths(mean, spread)
    return [max(1, round(exp(normal.inv_cdf((part + 0.5) / count)))) for part in range(count)]


def saved_when_lengths_differ(samples: int) -> float:
    """Share of blocks saved over a run in which each continuation stops at a length of its own.

    Expected values, summed over all decoding steps t, with S(t) the chance that a continuation still runs:
    n * S(t) continuations hold blocks, and all but one of those that run, n * S(t) - (1 - (1 - S(t))^n),
    save the prompt's full blocks.
    """
    prompts, outputs = lengths(*PROMPT), lengths(*OUTPUT)
    full = sum(prompt // BLOCK_SIZE for prompt in prompts) / len(prompts)
    saved = held = 0.0
    for step in range(1, outputs[-1] + 1):
        running = sum(step <= output for output in outputs) / len(outputs)
        blocks = sum(-(-(prompt + step) // BLOCK_SIZE) for prompt in prompts) / len(prompts)
        held += samples * running * blocks
        saved += (samples * running - 1 + (1 - running) ** samples) * full
    return saved / held


def _log_lengths(mean: float, spread: float) -> NormalDist:
    variance = log(1 + spread**2)
    return NormalDist(log(mean) - variance / 2, sqrt(variance))
