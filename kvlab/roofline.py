"""The roofline: how fast a step can be when the machine's bandwidth and arithmetic are what limits it.

Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009; the last function is Amdahl's law (1967).
"""

from __future__ import annotations

from typing import NamedTuple

from kvlab.traffic import DecodeShape


class Roofline(NamedTuple):
    """A machine as two numbers, measured or from a data sheet: bytes a second, operations a second."""

    bytes_per_s: float
    operations_per_s: float

    @property
    def ridge(self) -> float:
        """The intensity, in operations a byte, below which a step waits for memory."""
        return self.operations_per_s / self.bytes_per_s

    def attainable(self, intensity: float) -> float:
        """Operations a second at this intensity: min(peak, intensity * bandwidth)."""
        return min(self.operations_per_s, intensity * self.bytes_per_s)

    def seconds(self, shape: DecodeShape) -> float:
        """The least time of a step: what takes longer, moving its bytes or doing its arithmetic."""
        return max(shape.must_move / self.bytes_per_s, shape.operations / self.operations_per_s)

    def memory_bound(self, shape: DecodeShape) -> bool:
        return shape.intensity < self.ridge


def whole_step(share: float, times: float) -> float:
    """How many times as fast the whole is when a part of it, `share` of its time, runs `times` as fast.

    Raises:
        ValueError: a share outside 0 to 1, or a factor that is not positive.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1 (3 % is 0.03), not {share}.")
    if times <= 0:
        raise ValueError(f"times must be positive (twice as fast is 2), not {times}.")
    return 1 / (1 - share + share / times)
