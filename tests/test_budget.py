"""From a card's memory to blocks and back, and requests that can never run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.budget import (
    ByteRange,
    available_bytes,
    budget_for_requests,
    budgets_that_fit,
    memory_account,
    request_problem,
    usable_blocks,
)

GIB = 1 << 30


def test_case_5_a_request_of_the_whole_pool_never_fits_beside_the_null_block():
    assert "it would wait for ever" in request_problem(512 * 16, 512, 16, 8192)
    assert "512 with the null block" in request_problem(512 * 16, 512, 16, 8192)
    assert request_problem(512 * 16, 513, 16, 8192) is None
    assert request_problem(512 * 16, 512, 16, 8192, null_block=False) is None


def test_case_6_a_pool_of_one_block_can_serve_nothing():
    with pytest.raises(
        ValueError, match="pool of 1 blocks and one of them is the null block can serve nothing"
    ):
        usable_blocks(1)
    assert usable_blocks(2) == 1
    assert usable_blocks(1, null_block=False) == 1
    with pytest.raises(ValueError, match="pool of 0 blocks can serve"):
        usable_blocks(0, null_block=False)


def test_case_8_within_the_model_but_larger_than_the_pool():
    reason = request_problem(1000, 11, 16, 8192)
    assert "needs 63 blocks" in reason and "has 10" in reason
    assert "at most 8,192" in request_problem(8193, 10_000, 16, 8192)
    assert request_problem(160, 11, 16, 8192) is None
    assert request_problem(161, 11, 16, 8192) is not None


def test_the_account_refuses_more_than_the_budget():
    with pytest.raises(ValueError, match=r"need 2.00 GiB more than 0.5 of 8.00 GiB"):
        memory_account(8 * GIB, "0.5", 5 * GIB, GIB)


def test_available_bytes():
    assert available_bytes(10 * GIB, "0.9", 4 * GIB, GIB) == 4 * GIB
    with pytest.raises(ValueError, match="Nothing is left"):
        available_bytes(10 * GIB, "0.9", 9 * GIB)


def test_budget_for_requests():
    assert budget_for_requests(2, 17, 16, 100) == 400
    assert budget_for_requests(2, 17, 16, 100, null_block=True) == 500
    with pytest.raises(ValueError, match="at least 1"):
        budget_for_requests(0, 17, 16, 100)


def test_logs_of_different_budgets():
    with pytest.raises(ValueError, match="No single budget gives all of these: 1 blocks of 10 B, 3 blocks"):
        budgets_that_fit((1, 10), (3, 10))
    with pytest.raises(ValueError, match="at least one"):
        budgets_that_fit()
    assert ByteRange(3, 3).is_empty


@given(st.integers(0, 10**6), st.lists(st.integers(1, 5000), min_size=1, max_size=4))
def test_the_range_holds_exactly_the_budgets_that_give_these_logs(budget, sizes):
    fits = budgets_that_fit(*((budget // size, size) for size in sizes))
    assert fits.low <= budget < fits.high
    for outside in (fits.low - 1, fits.high):
        assert any(outside // size != budget // size for size in sizes)


@given(st.integers(1, 3000), st.integers(2, 400), st.integers(1, 64))
def test_a_request_runs_exactly_when_its_blocks_are_usable(tokens, blocks, block_size):
    fits = -(-tokens // block_size) <= blocks - 1
    assert (request_problem(tokens, blocks, block_size, 3000) is None) == fits
