import math

import pytest
import torch

from kvlab import attention_oracle, online_softmax_trace
from kvlab.views import OnlineSoftmax
from kvlab.views.softmax_drawing import draw_softmax
from kvlab.views.softmax_steps import number, tell_softmax, update

from .reading import starts, words


@pytest.fixture
def case():
    generator = torch.Generator().manual_seed(3)
    q = torch.randn(16, generator=generator) * 1.5
    k, v = torch.randn(2, 8, 4, 16, generator=generator)
    return q, k, v, online_softmax_trace(q, k, v, [5, 2, 7], 11)


def test_updates_explain_the_running_sum(case):
    *_, trace = case
    for step in range(1, len(trace) + 1):
        change = update(trace, step)
        assert change.old_sum * change.factor + change.added == pytest.approx(change.new_sum)
        scores = [score for entry in trace[:step] for score in entry.scores]
        assert change.new_sum == pytest.approx(sum(math.exp(score - max(scores)) for score in scores))


def test_the_last_bars_are_the_attention_output(case):
    q, k, v, trace = case
    order = torch.tensor([5, 2, 7])
    keys, values = (x[order].reshape(12, 1, 16)[:11] for x in (k, v))
    expected = attention_oracle(q[None], keys, values)[0]
    svg = draw_softmax(trace, len(trace))
    bars = [data for _, y, data in starts(svg, fill="#0072b2") if y > 300]
    heights = torch.tensor([float(data.split("v")[1].split("h")[0]) for data in bars])
    scale = heights.max() / expected.abs().max()
    assert torch.allclose(heights, (expected.abs() * scale).float(), atol=1.1)


def test_each_step_says_maximum_and_sum(case):
    *_, trace = case
    for step, entry in enumerate(trace, 1):
        svg = draw_softmax(trace, step)
        assert f"max {number(entry.running_max)}" in words(svg)
        assert number(entry.running_sum) in words(svg)
        assert number(entry.running_max) in tell_softmax(trace, step)


def test_only_blocks_seen_so_far_are_filled(case):
    *_, trace = case
    seen = [
        len([x for x in starts(draw_softmax(trace, step), fill="#0072b2") if x[1] < 155]) for step in range(4)
    ]
    assert seen == [0, 4, 8, 11]


def test_a_larger_score_is_pointed_out():
    trace = online_softmax_trace(
        torch.ones(1), torch.tensor([[[1.0]], [[3.0]], [[2.0]]]), torch.ones(3, 1, 1), [0, 1, 2], 3
    )
    assert "a larger score, maximum 1 → 3; what came before shrinks by 0.135" in tell_softmax(trace, 2)
    assert "the maximum stays 3" in tell_softmax(trace, 3)


def test_nothing_to_attend_to_is_zeros():
    figure = OnlineSoftmax([])
    assert figure.words() == "No position counts: the output is zeros."
    figure.buttons[2].click()
    assert figure.step == 0 and "zeros" in figure.static()


def test_the_widget_starts_before_the_first_block(case):
    figure = OnlineSoftmax(case[-1])
    assert figure.step == 0 and "Nothing seen yet" in figure.telling.value
    figure.buttons[3].click()
    assert figure.step == 3
