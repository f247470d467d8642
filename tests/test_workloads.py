"""Lengths, arrivals and files: the stated means and quantiles, one seed one workload, helpful errors."""

import random
from collections import Counter
from itertools import pairwise
from statistics import fmean, pstdev, quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.arrivals import AtOnce, Bursty, Closed, Poisson
from kvlab.lengths import Bimodal, Fixed, LogNormal, Pair, Quantiles, Uniform
from kvlab.workload_csv import read_workload
from kvlab.workloads import AZURE_RATES, LENGTHS, Request, workload

MANY = 20_000
# facts of the paper's figure 11 and of the traces: mean prompt, mean output
MEANS = {
    "sharegpt": (161.31, 337.99),
    "alpaca": (19.31, 58.45),
    "azure-conversation": (1154.7, 211.1),
    "azure-code": (2047.8, 27.9),
    "arxiv": (2588.1, 291.4),
}


def drawn(distribution, count=MANY, seed=1):
    rng = random.Random(seed)
    return [distribution.draw(rng) for _ in range(count)]


@pytest.mark.parametrize("name", MEANS)
def test_the_means_are_the_sources(name):
    """Within 4 standard errors and the rounding to whole tokens."""
    pairs = drawn(LENGTHS[name])
    for lengths, mean in zip(zip(*pairs, strict=True), MEANS[name], strict=True):
        spread = pstdev(lengths)
        assert abs(fmean(lengths) - mean) < 4 * spread / MANY**0.5 + 0.5, (name, fmean(lengths), mean)
        assert min(lengths) >= 1


@pytest.mark.parametrize("name", ["azure-conversation", "azure-code", "arxiv"])
def test_a_quantile_table_comes_back(name):
    """By inverse CDF: the table's points exactly, and a sample's quantiles near them."""
    for distribution in (LENGTHS[name].prompt, LENGTHS[name].output):
        assert [(p, distribution.at(p)) for p, _ in distribution.points] == list(distribution.points)
        cuts = quantiles(drawn(distribution), n=100)
        for p, tokens in distribution.points[:4]:
            assert cuts[round(100 * p) - 1] == pytest.approx(tokens, rel=0.12, abs=2)
        curve = [distribution.at(p / 500) for p in range(501)]
        assert curve == sorted(curve)


def test_share_of_a_fixed_reservation_that_conversations_use():
    """33.0 % of 4,096 slots, 16.7 % of 8,192, 8.3 % of 16,384 (from the trace itself)."""
    for max_len, share in ((4096, 0.330), (8192, 0.167), (16384, 0.083)):
        load = workload("azure-conversation", MANY, seed=2, max_len=max_len)
        used = load.num_tokens / MANY / max_len
        print(f"of {max_len} slots {used:.1%} used, by the trace {share:.1%}")
        assert used == pytest.approx(share, abs=0.012)


def test_the_paper_s_workloads_fit_opt_13b():
    load = workload("sharegpt", 2000, max_len=2048)
    assert max(r.prompt for r in load.requests) <= 1024
    assert max(r.prompt + r.output for r in load.requests) <= 2048


@pytest.mark.parametrize(
    ("distribution", "expected"),
    [
        (Fixed(7), {7}),
        (Uniform(3, 5), {3, 4, 5}),
        (Bimodal(Fixed(2), Uniform(8, 9), 0.3), {2, 8, 9}),
    ],
)
def test_small_distributions_give_all_their_lengths(distribution, expected):
    assert set(drawn(distribution, 500)) == expected


def test_bimodal_mixes_in_the_given_share():
    assert Counter(drawn(Bimodal(Fixed(1), Fixed(2), 0.25)))[2] / MANY == pytest.approx(0.25, abs=0.02)


def test_lognormal_is_cut_and_keeps_its_mean():
    lengths = drawn(LogNormal(100, 1.5, 400))
    assert max(lengths) <= 400 and fmean(lengths) == pytest.approx(100, rel=0.03)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Fixed(0),
        lambda: Uniform(0, 4),
        lambda: Uniform(5, 4),
        lambda: Bimodal(Fixed(1), Fixed(2), 1.5),
        lambda: LogNormal(10, 0, 100),
        lambda: LogNormal(80, 1, 100),
        lambda: Quantiles(((0.5, 10), (0.9, 9)), 8),
        lambda: Quantiles(((0.5, 10), (1.0, 20)), 30),
        lambda: Poisson(0),
        lambda: Bursty(1, 0),
        lambda: Closed(0),
        lambda: workload("sharegtp", 3),
        lambda: workload("alpaca", 0),
        lambda: workload("alpaca", 3, max_len=1),
    ],
)
def test_nonsense_is_refused(bad):
    with pytest.raises(ValueError, match=r"not|no distribution|there are: sharegpt, alpaca"):
        bad()


def test_pairs_that_never_fit_are_not_waited_for():
    with pytest.raises(ValueError, match="10,000 pairs in a row had more than 100 tokens"):
        workload(Pair(Fixed(50), Fixed(60), 100), 1)


def test_one_seed_one_workload():
    assert workload("sharegpt", 50, seed=4) == workload("sharegpt", 50, seed=4)
    assert workload("sharegpt", 50, seed=4) != workload("sharegpt", 50, seed=5)
    assert workload("fixed", 2).requests == (Request(0, 0.0, 256, 256), Request(1, 0.0, 256, 256))
    a, b = workload("alpaca", 50, seed=4), workload("alpaca", 50, seed=4, arrivals=Poisson(2))
    assert [r[2:] for r in a.requests] == [r[2:] for r in b.requests], "arrivals do not change the lengths"
    assert workload((Fixed(3), Fixed(4)), 1).requests == (Request(0, 0.0, 3, 4),)


def test_arrivals():
    rng = random.Random(0)
    for rate in AZURE_RATES.values():
        times = Poisson(rate).times(MANY, rng)
        gaps = [b - a for a, b in pairwise(times)]
        assert fmean(gaps) == pytest.approx(1 / rate, rel=0.03)
        assert fmean(g * g for g in gaps) / fmean(gaps) ** 2 == pytest.approx(2, rel=0.1), "exponential gaps"
    times = Bursty(4, 8).times(MANY, rng)
    assert times[-1] == pytest.approx(MANY / 4, rel=0.1)
    assert set(Counter(times[: MANY // 8 * 8]).values()) == {8}
    assert AtOnce().times(3, rng) == Closed(2).times(3, rng) == [0, 0, 0]
    assert workload("fixed", 3, arrivals=Closed(2)).users == 2


def test_cutting_keeps_a_token_of_output():
    load = workload((Fixed(50), Fixed(30)), 1)
    assert [load.cut(limit).requests[0][2:] for limit in (80, 60, 40)] == [(50, 30), (50, 10), (39, 1)]


def test_a_file_of_your_own(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("Output, prompt ,arrival,who\n5,10,3.5,a\n\n7,20,1.5,b\n")
    load = read_workload(path)
    assert (load.name, load.requests) == ("mine.csv", (Request(0, 0.0, 20, 7), Request(1, 2.0, 10, 5)))
    path.write_text("\ufeffprompt,output\n1,2\n")
    assert read_workload(path).requests == (Request(0, 0.0, 1, 2),)


def test_an_azure_trace(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"
        "2023-11-16 18:15:50.9951690,396,109\n"
    )
    first, second = read_workload(path).requests
    assert (first[2:], second[2:]) == ((374, 44), (396, 109))
    assert second.arrival == pytest.approx(4.314579, abs=1e-5)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no column 'prompt'"),
        ("prompt,tokens\n1,2\n", "has no column 'output': its first line must name the columns"),
        ("prompt,output\n", "has no requests"),
        ("prompt,output\n1,2\nx,2\n", "line 3: prompt must be a whole number of at least 1 token, not 'x'"),
        ("prompt,output\n1,0\n", "line 2: output must be a whole number of at least 1 token, not '0'"),
        ("prompt,output\n1\n", "line 2: there is no output, the line has only 1 columns"),
        (
            "prompt,output,arrival\n1,2,soon\n",
            "arrival must be seconds or a date and time, not 'soon'",
        ),
        ("prompt,output,arrival\n1,2,nan\n", "not 'nan'"),
    ],
)
def test_a_bad_file_says_what_is_wrong_and_where(tmp_path, text, says):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(ValueError) as raised:
        read_workload(path)
    assert says in str(raised.value) and str(path) in str(raised.value)


def test_what_is_no_text_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        read_workload(tmp_path / "missing.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not a text file"):
        read_workload(tmp_path / "binary.csv")


@given(st.text(max_size=60))
def test_any_text_is_a_workload_or_a_value_error(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_text("prompt,output\n" + text, encoding="utf-8", errors="replace")
    try:
        assert read_workload(path).requests
    except ValueError as error:
        assert str(path) in str(error)
