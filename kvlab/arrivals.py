"""When requests arrive: all at once, one by one, in bursts, or each user after their last answer.

`times(count, rng)` gives `count` arrival times in seconds, rising from 0 on.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


def _check_rate(rate: float) -> None:
    if not rate > 0:
        raise ValueError(f"rate must be positive, in requests a second, not {rate}")


@dataclass(frozen=True)
class AtOnce:
    """Everybody waits from the start: more load than any memory can take."""

    users = None

    def times(self, count: int, rng: Random) -> list[float]:
        return [0.0] * count


@dataclass(frozen=True)
class Poisson:
    """Independent arrivals, `rate` requests a second on average: gaps are exponential."""

    rate: float
    users = None

    def __post_init__(self):
        _check_rate(self.rate)

    def times(self, count: int, rng: Random) -> list[float]:
        now, times = 0.0, []
        for _ in range(count):
            now += rng.expovariate(self.rate)
            times.append(now)
        return times


@dataclass(frozen=True)
class Bursty:
    """`burst` requests at the same moment, at Poisson moments; `rate` requests a second overall."""

    rate: float
    burst: int = 10

    users = None

    def __post_init__(self):
        _check_rate(self.rate)
        if self.burst < 1:
            raise ValueError(f"a burst has at least 1 request, not {self.burst}")

    def times(self, count: int, rng: Random) -> list[float]:
        moments = Poisson(self.rate / self.burst).times(-(-count // self.burst), rng)
        return [moment for moment in moments for _ in range(self.burst)][:count]


@dataclass(frozen=True)
class Closed:
    """`users` people who each send their next request when the last one is answered.

    The times are all 0; whoever runs the workload lets at most `users` requests in at a time.
    """

    users: int

    def __post_init__(self):
        if self.users < 1:
            raise ValueError(f"there must be at least 1 user, not {self.users}")

    def times(self, count: int, rng: Random) -> list[float]:
        return [0.0] * count
