"""Partial attention: parts merge to the whole, and each step of the trace covers the positions so far."""

import math

import pytest
import torch
from attention_batch import Batch

from kvlab.attention import attention_oracle
from kvlab.online_softmax import merge, online_softmax_trace, partial

SCORES = torch.tensor([0.5, -1.0, 2.0, 0.0, 1.0, 3.0], dtype=torch.float64)
VALUES = torch.arange(12, dtype=torch.float64).view(6, 2)
WHOLE = torch.softmax(SCORES, 0) @ VALUES


def piece(begin, end):
    return partial(SCORES[begin:end], VALUES[begin:end])


@pytest.mark.parametrize("cut", [1, 3, 5])
def test_two_parts_make_the_whole_in_either_order(cut):
    left, right = piece(0, cut), piece(cut, 6)
    for merged in (merge(left, right), merge(right, left)):
        assert torch.allclose(merged.output(), WHOLE, atol=1e-14)
        assert merged.max == 3.0
        assert torch.isclose(merged.sum, torch.exp(SCORES - 3.0).sum())


def test_merging_is_associative():
    a, b, c = piece(0, 2), piece(2, 3), piece(3, 6)
    assert torch.allclose(merge(merge(a, b), c).output(), merge(a, merge(b, c)).output(), atol=1e-14)


def test_an_empty_part_changes_nothing_and_alone_gives_zeros():
    nothing = partial(torch.full((6,), -math.inf, dtype=torch.float64), VALUES)
    assert nothing.output().tolist() == [0.0, 0.0] and nothing.sum == 0
    assert torch.equal(merge(nothing, piece(0, 6)).output(), piece(0, 6).output())
    assert torch.equal(merge(piece(0, 6), nothing).output(), piece(0, 6).output())
    assert merge(nothing, nothing).output().tolist() == [0.0, 0.0]


def test_huge_scores_do_not_overflow():
    merged = merge(partial(SCORES[:2] + 5000, VALUES[:2]), partial(SCORES[2:] - 5000, VALUES[2:]))
    assert torch.allclose(merged.output(), torch.softmax(SCORES[:2], 0) @ VALUES[:2])


@pytest.mark.parametrize("window", [None, 1, 6])
@pytest.mark.parametrize("block_size", [1, 3, 4, 16])
@pytest.mark.parametrize("length", [1, 4, 5, 37])
def test_each_step_of_the_trace_is_attention_over_the_positions_so_far(length, block_size, window):
    batch = Batch([length], block_size, group=3)
    table = batch.tables[0, : -(-length // block_size)].tolist()
    q, k, v = batch.q[0, 4], batch.k[0][:, 1:].double(), batch.v[0][:, 1:].double()  # query head 4: KV head 1
    steps = online_softmax_trace(
        q, batch.k_cache[:, :, 1], batch.v_cache[:, :, 1], table, length, window=window
    )
    start = max(0, length - window) if window else 0
    assert [t for step in steps for t in step.positions] == list(range(start, length))
    scores = []
    for step in steps:
        assert {table[t // block_size] for t in step.positions} == {step.block}
        end = step.positions[-1] + 1
        exact = [float(q.double() @ k[t, 0]) / math.sqrt(32) for t in step.positions]
        assert step.scores == pytest.approx(exact, abs=1e-12)
        scores += exact
        assert step.running_max == pytest.approx(max(scores), abs=1e-12)
        assert step.running_sum == pytest.approx(sum(math.exp(s - max(scores)) for s in scores), rel=1e-12)
        so_far = attention_oracle(q[None], k[start:end], v[start:end])[0]
        assert step.partial_output == pytest.approx(so_far.tolist(), abs=1e-12)


def test_the_trace_of_nothing_has_no_steps():
    assert online_softmax_trace(torch.ones(4), torch.ones(2, 3, 4), torch.ones(2, 3, 4), [0], 0) == []


def test_the_trace_is_plain_numbers():
    (step,) = online_softmax_trace(
        torch.ones(4), torch.ones(2, 3, 4).half(), torch.ones(2, 3, 4).half(), [1], 2
    )
    assert step.block == 1 and step.positions == (0, 1) and step.scores == (2.0, 2.0)
    assert (step.running_max, step.running_sum, step.partial_output) == (2.0, 2.0, (1.0, 1.0, 1.0, 1.0))
    assert all(type(number) is float for number in (*step.scores, step.running_max, *step.partial_output))
