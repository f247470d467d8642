"""How long prompts and outputs are: distributions to draw token counts from, each a few lines of arithmetic.

Every distribution has `draw(rng)`, which gives a whole number of at least 1 token; that of a `Pair` gives a
prompt and an output. `rng` is a `random.Random`, so that a seed decides everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import exp, log, sqrt
from random import Random
from statistics import NormalDist

DRAWS = 10_000  # of a pair, before it is said that there is none


@dataclass(frozen=True)
class Fixed:
    """Always `tokens`."""

    tokens: int

    def __post_init__(self):
        if self.tokens < 1:
            raise ValueError(f"a length is at least 1 token, not {self.tokens}")

    def draw(self, rng: Random) -> int:
        return self.tokens


@dataclass(frozen=True)
class Uniform:
    """Every length from `low` to `high`, both included, equally likely."""

    low: int
    high: int

    def __post_init__(self):
        if not 1 <= self.low <= self.high:
            raise ValueError(
                f"lengths go from a low of at least 1 to a high, not from {self.low} to {self.high}"
            )

    def draw(self, rng: Random) -> int:
        return rng.randint(self.low, self.high)


@dataclass(frozen=True)
class Bimodal:
    """Short and long requests in one queue: `long` with probability `share_long`, else `short`."""

    short: Fixed | Uniform
    long: Fixed | Uniform
    share_long: float = 0.5

    def __post_init__(self):
        if not 0 <= self.share_long <= 1:
            raise ValueError(f"share_long is a probability, 0 to 1, not {self.share_long}")

    def draw(self, rng: Random) -> int:
        return (self.long if rng.random() < self.share_long else self.short).draw(rng)


@dataclass(frozen=True)
class LogNormal:
    """exp of a normal variable, cut off above `most`: what is longer is drawn again.

    mean: of the lengths that are drawn, the cut included. cv: standard deviation / mean of the curve before
    the cut, so sigma^2 = ln(1 + cv^2). mu follows from the mean: a lognormal cut at c has the mean
    exp(mu + sigma^2 / 2) * F((ln c - mu) / sigma - sigma) / F((ln c - mu) / sigma), F the normal CDF.
    """

    mean: float
    cv: float
    most: int

    def __post_init__(self):
        if not (self.cv > 0 and 1 <= self.mean < self.most / 2):
            raise ValueError(
                f"cv must be positive and the mean at least 1 and well below `most`, not cv {self.cv}, mean "
                f"{self.mean}, most {self.most}"
            )

    @property
    def sigma(self) -> float:
        return sqrt(log(1 + self.cv**2))

    @cached_property
    def mu(self) -> float:
        """The normal variable's mean, found by halving: the cut curve's mean rises with it."""
        low, high = 0.0, log(self.most)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self._mean_at(middle) < self.mean else (low, middle)
        return low

    def draw(self, rng: Random) -> int:
        while True:
            tokens = exp(rng.gauss(self.mu, self.sigma))
            if tokens <= self.most:
                return max(1, round(tokens))

    def _mean_at(self, mu: float) -> float:
        at_cut = (log(self.most) - mu) / self.sigma
        cdf = NormalDist().cdf
        return exp(mu + self.sigma**2 / 2) * cdf(at_cut - self.sigma) / cdf(at_cut)


@dataclass(frozen=True)
class Quantiles:
    """A measured distribution from its quantile table, by inverse CDF.

    points: (probability, tokens), rising, the last at probability 1; the smallest length is 1. Between two
    points lengths follow a power curve, low + (high - low) * t ** bend, with the one bend for the whole table
    that gives `mean`: the average of t ** bend is 1 / (bend + 1), so mean = sum of the segments'
    weight * (low + (high - low) / (bend + 1)). So the table's quantiles and its mean are both met.
    """

    points: tuple[tuple[float, int], ...]
    mean: float

    def __post_init__(self):
        if any(a >= c or b > d for (a, b), (c, d) in pairwise(self._all())) or self.points[-1][0] != 1:
            raise ValueError(f"the points must rise and end at probability 1, not {self.points}")
        if not 0 < self._share() < 1:
            raise ValueError(f"no distribution with these quantiles has a mean of {self.mean}")

    @cached_property
    def bend(self) -> float:
        """The exponent of the curve between two points."""
        return 1 / self._share() - 1

    def draw(self, rng: Random) -> int:
        return self.at(rng.random())

    def at(self, probability: float) -> int:
        """The length that this share of all requests stays below."""
        for (low_p, low), (high_p, high) in pairwise(self._all()):
            if probability <= high_p:
                t = (probability - low_p) / (high_p - low_p)
                return max(1, round(low + (high - low) * t**self.bend))
        raise ValueError(f"a probability is 0 to 1, not {probability}")

    def _all(self) -> list[tuple[float, int]]:
        return [(0.0, 1), *self.points]

    def _share(self) -> float:
        segments = list(pairwise(self._all()))
        lows = sum((q - p) * low for (p, low), (q, _) in segments)
        spans = sum((q - p) * (high - low) for (p, low), (q, high) in segments)
        return (self.mean - lows) / spans


@dataclass(frozen=True)
class Pair:
    """A prompt and an output, drawn independently of each other; a pair of more than `most` tokens is drawn
    again (None: never)."""

    prompt: Fixed | Uniform | Bimodal | LogNormal | Quantiles
    output: Fixed | Uniform | Bimodal | LogNormal | Quantiles
    most: int | None = None

    def draw(self, rng: Random) -> tuple[int, int]:
        """(prompt tokens, output tokens). ValueError when such pairs are too rare to wait for."""
        for _ in range(DRAWS):
            prompt, output = self.prompt.draw(rng), self.output.draw(rng)
            if self.most is None or prompt + output <= self.most:
                return prompt, output
        raise ValueError(
            f"{DRAWS:,} pairs in a row had more than {self.most} tokens: shorten the lengths or raise `most`"
        )
