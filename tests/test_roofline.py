"""The roofline's two sides, and Amdahl's law."""

import pytest

from kvlab.roofline import Roofline, whole_step
from kvlab.traffic import DecodeShape

GPU = Roofline(bytes_per_s=4.8e12, operations_per_s=990e12)  # a data sheet's figures, not a measurement


def test_below_the_ridge_the_memory_decides():
    shape = DecodeShape(64, 8192, dtype="bfloat16")
    assert GPU.ridge == pytest.approx(206, abs=1)
    assert GPU.memory_bound(shape)
    assert GPU.seconds(shape) == shape.must_move / 4.8e12
    assert GPU.attainable(shape.intensity) == pytest.approx(shape.operations / GPU.seconds(shape))


def test_above_the_ridge_the_arithmetic_decides():
    slow = Roofline(bytes_per_s=10e9, operations_per_s=10e9)
    shape = DecodeShape(1, 1024)
    assert not slow.memory_bound(shape)
    assert slow.seconds(shape) == shape.operations / 10e9
    assert slow.attainable(shape.intensity) == 10e9


@pytest.mark.parametrize(
    ("share", "times", "whole"),
    [(0.03, 1e12, 1 / 0.97), (0.5, 2, 4 / 3), (1, 7, 7), (0, 7, 1), (0.25, 0.5, 0.8)],
)
def test_amdahl(share, times, whole):
    assert whole_step(share, times) == pytest.approx(whole)


@pytest.mark.parametrize(("share", "times", "says"), [(3, 2, "3 % is 0.03"), (0.5, 0, "must be positive")])
def test_amdahl_refuses(share, times, says):
    with pytest.raises(ValueError, match=says):
        whole_step(share, times)
