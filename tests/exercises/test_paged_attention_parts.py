"""What stands beside the exercises of notebook 05: the drawn merge and the watch over large tensors."""

import pytest
import torch

from kvlab import online_softmax_trace
from kvlab.exercises import get
from kvlab.exercises.n05_paged_attention.drawn import trace_with
from kvlab.exercises.n05_paged_attention.largest import largest_made
from kvlab.exercises.registry import define


@pytest.fixture
def case():
    generator = torch.Generator().manual_seed(0)
    k, v = torch.randn(2, 8, 4, 16, generator=generator)  # [N, B, D] each
    return torch.randn(16, generator=generator), k, v, [5, 2, 7], 11


def test_a_right_merge_is_drawn_as_the_trace(case):
    exercise = get("05.merge")
    drawn = trace_with(define(exercise, exercise.solution), *case)
    for mine, right in zip(drawn, online_softmax_trace(*case), strict=True):
        assert mine.positions == right.positions and mine.block == right.block
        assert mine.running_sum == pytest.approx(right.running_sum, rel=1e-5)
        assert mine.partial_output == pytest.approx(right.partial_output, abs=1e-5)


def test_a_wrong_merge_is_drawn_wrong(case):
    exercise = get("05.merge")
    wrong = define(exercise, exercise.wrong[0].source)
    assert trace_with(wrong, *case)[-1].partial_output != pytest.approx(
        online_softmax_trace(*case)[-1].partial_output, abs=1e-3
    )


def test_views_cost_nothing_and_copies_count():
    x = torch.zeros(64, 32)
    assert largest_made(lambda x: x[3:9].transpose(0, 1).sum(), x) <= 1
    assert largest_made(lambda x: x.repeat_interleave(4, 0).sum(), x) == 4 * 64 * 32
    assert largest_made(lambda x: torch.stack([x, x]).sum(), x) == 2 * 64 * 32
