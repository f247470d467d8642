"""Figures of the PagedAttention paper (arXiv:2309.06180), by simulation; each prints the comparison.

Assumptions: lognormal lengths with the paper's means and our spread (`kvlab.workloads`), independent prompts
and outputs, a buddy allocator for the contiguous baselines, everybody waiting from the start, one token a
request and step, first come first served, averages over the steps in which somebody waits. The seed is fixed.
A run of 1,500 requests scatters by about a point. Pow2 lies nearest to the edge: 29.5 / 19.4 / 15.0 / 36.0
over 30,000 requests, and of the seeds 0 to 9 one (6) leaves the tolerances, by 0.1 and 0.6 points.
"""

import pytest

from kvlab.contiguous import Oracle, PowerOfTwo, ReserveMax
from kvlab.paged_allocator import PagedAllocator
from kvlab.sharing_savings import parallel_sampling, sample_group
from kvlab.simulation import run
from kvlab.sweeps import OPT_13B_SLOTS, Point, points, sweep
from kvlab.workloads import workload

MAX_LEN, REQUESTS, SEED = 2048, 1500, 0
# % of the KV memory: tokens, reserved, internal, external and other (figure 2); mean batch (figure 13)
FIGURE_2 = {
    "reserve max": (20.4, 13.3, 57.3, 8.9),
    "power of two": (26.8, 17.9, 13.6, 41.6),
    "oracle": (38.2, 25.2, 0.0, 36.6),
}
FIGURE_13 = {"reserve max": 7.00, "power of two": 9.81, "oracle": 13.62, "paged": 30.42}
FIGURE_15 = {2: 6.09, 4: 8.53, 6: 9.79}
BLOCK_SIZES = (1, 4, 8, 16, 32, 64, 128, 256)
TOKENS_OF_ALLOCATED = {
    "sharegpt": (100, 99.6, 99.2, 98.2, 96.4, 92.9, 86.7, 76.5),
    "alpaca": (100, 98.1, 95.7, 91.3, 83.6, 70.7, 50.7, 29.4),
}


@pytest.fixture(scope="module")
def results():
    """ShareGPT-like requests for OPT-13B in 12 GiB, on each of the four allocators."""
    load = workload("sharegpt", REQUESTS, seed=SEED, max_len=MAX_LEN)
    reserving = [kind(OPT_13B_SLOTS, MAX_LEN) for kind in (ReserveMax, PowerOfTwo, Oracle)]
    return {a.name: run(load, a) for a in [*reserving, PagedAllocator(OPT_13B_SLOTS, 16)]}


def test_figure_2(results, capsys):
    """Within 3 points; 6 for what Pow2 leaves outside, where the buddy's rounding depends on the lengths."""
    with capsys.disabled():
        print("\nfigure 2, % of KV memory: tokens / reserved / internal / external (paper)")
        for name, paper in FIGURE_2.items():
            ours = [100 * part for part in results[name][2:6]]
            shown = [f"{mine:.1f} ({theirs})" for mine, theirs in zip(ours, paper, strict=True)]
            print(f"  {name:13}", " / ".join(shown))
        print(f"  paged         {100 * results['paged'].held:.1f} of allocated (96.3)")
    for name, paper in FIGURE_2.items():
        for part, (mine, theirs) in enumerate(zip(results[name][2:6], paper, strict=True)):
            points_off = 6 if (name, part) == ("power of two", 3) else 3
            assert 100 * mine == pytest.approx(theirs, abs=points_off), (name, part)
    assert 100 * results["paged"].held == pytest.approx(96.3, abs=3)


def test_figure_13(results, capsys):
    """Mean batch within 10 %."""
    with capsys.disabled():
        print("\nfigure 13, mean batch (paper):", end="")
        for name, paper in FIGURE_13.items():
            print(f" {name} {results[name].batch:.2f} ({paper})", end="")
        print()
    for name, paper in FIGURE_13.items():
        assert results[name].batch == pytest.approx(paper, rel=0.1), name
    assert results["reserve max"].batch == results["reserve max"].peak_batch == OPT_13B_SLOTS // MAX_LEN == 7


def test_nobody_is_lost(results):
    for result in results.values():
        assert (result.finished, result.refused) == (REQUESTS, 0)
        assert sum(result[2:6]) == pytest.approx(1)


def test_figure_15_parallel(capsys):
    """Alpaca, block size 16, within 3 points if all samples of a prompt are equally long.

    That saves too much (7.0, 10.5 and 11.7 % over 30,000 prompts), independent lengths too little."""
    load = workload("alpaca", 500, seed=SEED, max_len=MAX_LEN)
    rows = {}
    for samples in FIGURE_15:
        equal, independent = (parallel_sampling(load, samples, equal_lengths=e).saved for e in (True, False))
        rows[samples] = 100 * equal, 100 * independent
    with capsys.disabled():
        print("\nfigure 15, % of memory saved by sharing: equal lengths, independent lengths (paper)")
        for samples, (equal, independent) in rows.items():
            print(f"  {samples} samples: {equal:.2f}, {independent:.2f} ({FIGURE_15[samples]})")
    for samples, paper in FIGURE_15.items():
        equal, independent = rows[samples]
        assert equal == pytest.approx(paper, abs=3)
        assert independent < paper < equal


def test_sharing_by_hand():
    """B = 4, prompt of 6, two samples of 3: 1 block shared throughout, the partial one copied at once."""
    savings = sample_group(6, [3, 3], 4)
    assert savings.copies == 1
    assert (savings.physical, savings.unshared) == (3 + 3 + 5, 4 + 4 + 6)
    assert sample_group(6, [3], 4).saved == 0
    with pytest.raises(ValueError, match="at least 1 sample"):
        parallel_sampling(workload("fixed", 1), 0)


@pytest.mark.parametrize(("name", "num_slots"), [("sharegpt", 8192), ("alpaca", 4096)])
def test_block_size_table(name, num_slots, capsys):
    """Slots that hold tokens, % of allocated, within 3 points, and the larger the block the fewer.

    In a smaller memory than OPT-13B's, which fills up with fewer requests; the shares do not depend on it."""
    base = Point(workload=name, count=400 if name == "sharegpt" else 4000, seed=SEED, num_slots=num_slots)
    ours = [100 * result.held for result in sweep(points(base, block_size=BLOCK_SIZES))]
    paper = TOKENS_OF_ALLOCATED[name]
    with capsys.disabled():
        print(f"\n{name}: tokens, % of allocated, by block size (reference)")
        shown = zip(BLOCK_SIZES, ours, paper, strict=True)
        print("  " + "  ".join(f"{size}: {mine:.1f} ({theirs})" for size, mine, theirs in shown))
    assert ours == pytest.approx(paper, abs=3)
    assert ours == sorted(ours, reverse=True) and ours[0] == 100


def test_opt_13b_slots():
    """819,200 B a token; 12 GiB hold 15,728 of them."""
    token = 2 * 40 * 5120 * 2
    assert (token, 12 * 2**30 // token) == (819_200, OPT_13B_SLOTS)
