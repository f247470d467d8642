"""Logs and metrics pages in both wordings, each with its expected verdict; and text that is none of them."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_configs import QWEN_27B_CONFIG

from kvlab.engine_report import ForeignText, engine_report
from kvlab.engine_source import read_source
from kvlab.layer_kinds import Layer
from kvlab.model_shapes import named_shape
from kvlab.sizing import ModelShape
from kvlab.units import parse_bytes

DATA = Path(__file__).parent / "data" / "engine"
EXPECTED = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
QWEN = named_shape("qwen2.5-7b")
HYBRID = ModelShape(
    (Layer("full", 8, 128, 128),) * 6 + (Layer("sliding", 8, 128, 128, 1024),) * 30, "bfloat16", "hybrid"
)
LINES = (
    "Available KV cache memory: 5.68 GiB\n"
    "GPU KV cache size: 106,432 tokens\n"
    "Maximum concurrency for 8,192 tokens per request: 12.99x\n"
)


def verdicts(report) -> list[str]:
    return [finding.verdict for finding in report.findings]


def test_every_fixture_has_its_expectation():
    assert {path.name for path in DATA.iterdir()} == set(EXPECTED) | {"expected.json", "foreign.log"}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_fixture_gets_its_verdict(name):
    expected = EXPECTED[name]
    report = engine_report(
        read_source(str(DATA / name)),
        HYBRID if expected["model"] == "hybrid" else named_shape(expected["model"]),
        available=expected.get("available"),
        weights=parse_bytes(expected["weights"]) if "weights" in expected else None,
    )
    assert report.verdict == expected["verdict"]
    found = [(finding.line, finding.verdict) for finding in report.findings]
    assert found == [(line, verdict) for line, verdict, _ in expected["findings"]]
    for finding, (_, _, says) in zip(report.findings, expected["findings"], strict=True):
        assert says in finding.says, finding


def test_foreign_text_says_what_was_looked_for():
    with pytest.raises(ForeignText, match=r'in 3 lines.*"GPU KV cache size: 106,432 tokens"'):
        engine_report(read_source(str(DATA / "foreign.log")), QWEN)
    with pytest.raises(ForeignText, match="0 lines"):
        engine_report("", QWEN)


def test_a_number_that_is_off_by_one_block_outside_the_budget_differs():
    """The printed budget allows up to 6,653 blocks: 6,654 is one too many, 6,640 one too few."""
    for blocks, verdict in ((6_640, "differs"), (6_641, "agrees"), (6_653, "agrees"), (6_654, "differs")):
        text = f"Available KV cache memory: 5.68 GiB\nGPU KV cache size: {blocks * 16:,} tokens\n"
        assert engine_report(text, QWEN).findings[1].verdict == verdict
    half_block = LINES.replace("106,432", "106,433")
    assert verdicts(engine_report(half_block, QWEN))[:2] == ["note", "differs"]


def test_a_token_lost_to_floating_point_is_forgiven():
    """3,162 blocks / 49 * 784 is just below 50,592, and the engine logs it without its fraction."""
    lost = 3_162
    assert int(lost / 49 * 784) == lost * 16 - 1
    size = lost * QWEN.block_bytes(16) / 2**30
    text = (
        f"Available KV cache memory: {size:.2f} GiB\nGPU KV cache size: {lost * 16 - 1:,} tokens\n"
        f"Maximum concurrency for 784 tokens per request: {lost / 49:.2f}x\n"
    )
    assert verdicts(engine_report(text, QWEN))[:3] == ["agrees", "agrees", "agrees"]


def test_the_wrong_factor_differs():
    report = engine_report(LINES.replace("12.99x", "13.01x"), QWEN)
    assert verdicts(report) == ["agrees", "agrees", "differs"]
    assert "The log says 13.01." in report.findings[2].says


def test_what_is_given_wins_over_what_the_text_tells():
    text = "kv_cache_dtype=fp8, block_size=32\n" + LINES
    assert engine_report(text, QWEN).verdict == "differs"
    assert engine_report(text, QWEN, kv_dtype="bfloat16", block_size=16).verdict == "agrees"


def test_explanations_name_the_setting():
    blocks_of_query_heads = LINES.replace("106,432", "15,200").replace("12.99", "1.86")
    assert (
        "each query head had its own KV head" in engine_report(blocks_of_query_heads, QWEN).findings[1].says
    )
    as_full = (
        "Available KV cache memory: 3.66 GiB\nGPU KV cache size: 26,664 tokens\n"
        "Maximum concurrency for 8,192 tokens per request: 3.26x\n"
    )
    assert "windowed layers kept every token" in engine_report(as_full, HYBRID).findings[2].says
    other = engine_report(LINES, named_shape("llama-3.1-8b"))
    assert "is this the configuration of the model" in other.findings[1].says


QWEN_27B = ModelShape.from_config(QWEN_27B_CONFIG)


def test_a_public_log_of_a_model_with_linear_layers():
    """vLLM pull request #40694 reports 290,864 tokens and 33.04x for Qwen3.5-27B at length 32,768."""
    plan = QWEN_27B.plan(16)
    blocks = 1487
    assert plan.tokens_by_old_formula(blocks) == 290_864
    assert f"{plan.concurrency(blocks, 32_768):.2f}" == "33.04"
    text = (
        f"Available KV cache memory: {blocks * plan.block_bytes / 2**30:.2f} GiB\n"
        "GPU KV cache size: 290,864 tokens\nMaximum concurrency for 32,768 tokens per request: 33.04x\n"
    )
    assert verdicts(engine_report(text, QWEN_27B)) == ["note", "differs", "agrees"]


def test_two_states_a_request_when_prefixes_are_cached():
    text = "Available KV cache memory: 10.00 GiB\nMaximum concurrency for 32,768 tokens per request: 4.33x\n"
    plan = QWEN_27B.plan(16)
    assert plan.blocks_per_request(32_768, state_blocks=2) == 48
    assert f"{plan.num_blocks(10 * 2**30) / 48:.2f}" == "4.33"
    assert "2 states of each linear layer a request" in engine_report(text, QWEN_27B).findings[1].says
    assert engine_report("mamba_cache_mode='align'\n" + text, QWEN_27B).verdict == "agrees"


def test_gpu_blocks_of_older_logs():
    text = "# GPU blocks: 6652, # CPU blocks: 2048\n"
    assert "no budget" in engine_report(text, QWEN).findings[0].says
    assert engine_report(text, QWEN, available="5.68 GiB").findings[0].verdict == "agrees"
    assert engine_report(text, QWEN, available="5.60 GiB").findings[0].verdict == "differs"


def test_the_block_size_for_a_linear_state_is_checked():
    text = "Setting attention block size to 528 tokens\n" + LINES
    finding = engine_report(text, named_shape("qwen3-next-80b")).findings[0]
    assert finding.verdict == "differs" and "gives 544 tokens" in finding.says


def test_zero_tokens_and_a_request_of_zero():
    report = engine_report(LINES.replace("106,432", "0").replace("8,192", "0"), QWEN)
    assert [f.verdict for f in report.findings if f.line] == ["note", "differs", "not checked"]


def test_ranks_are_told_by_the_workers_when_no_setting_is():
    text = "".join(f"(Worker_TP{rank} pid=1) Available KV cache memory: 12.25 GiB\n" for rank in range(2))
    report = engine_report(text + "GPU KV cache size: 458,752 tokens\n", QWEN)
    assert report.settings["tensor_parallel"] == 2 and report.verdict == "agrees"


def test_settings_that_cannot_be_are_ignored():
    text = (
        "block_size=0 tensor_parallel_size=0 dtype=complex64 max_num_batched_tokens=0 max_seq_len=0\n" + LINES
    )
    assert engine_report(text, QWEN).verdict == "agrees"


def test_an_unknown_kv_dtype_is_a_sentence():
    with pytest.raises(ValueError, match="'nvfp4' is not a KV dtype known here"):
        engine_report("kv_cache_dtype=nvfp4\n" + LINES, QWEN)


def test_a_report_is_plain_data():
    report = engine_report(LINES, QWEN)
    data = json.loads(json.dumps(report.as_dict()))
    assert data["verdict"] == "agrees"
    assert data["settings"]["block_size"] == 16
    assert data["findings"][1] == {
        "line": 2,
        "quote": "GPU KV cache size: 106,432 tokens",
        "verdict": "agrees",
        "says": "6,652 blocks of 16 tokens, 5.68 GiB: as the formula says.",
    }


def survives(text: str, model: ModelShape = QWEN) -> None:
    """A report, or a sentence: nothing else may come out."""
    try:
        report = engine_report(text, model)
    except ValueError as error:
        assert str(error)
    else:
        json.dumps(report.as_dict())


PIECES = st.sampled_from(
    [
        *LINES.splitlines(keepends=True),
        "Checkpoint size: 14.19 GiB",
        "Setting attention block size to 9,999 tokens",
        "# GPU blocks: 1",
        "tensor_parallel_size=",
        "block_size: ",
        "kv_cache_dtype=",
        "max_num_batched_tokens=",
        "max_seq_len=",
        "dtype=torch.",
        'vllm:cache_config_info{block_size="',
        'num_gpu_blocks="',
        '"} 1.0\n',
        "vllm:kv_cache_usage_perc 0.5\n",
        "vllm:num_requests_running Inf\n",
        "vllm:prefix_cache_hits_total ",
        "\x1b[31m",
        "\n",
        " GiB",
        " tokens",
        "99999999999999999999",
        "1",
        "0",
        "fp8",
        "float16",
        ",",
    ]
)


@given(st.lists(PIECES | st.text(max_size=5) | st.integers(-5, 10**20).map(str), max_size=14).map("".join))
def test_fuzzed_text_never_crashes(text):
    survives(text)


def test_damaged_fixtures_never_crash():
    """Each fixture with bytes dropped, doubled and swapped at random, 40 times, with a fixed seed."""
    random_ = random.Random(7)
    for path in sorted(DATA.glob("*.*")):
        text = path.read_text(encoding="utf-8")
        model = (
            named_shape("qwen3-next-80b")
            if "linear" in path.name
            else HYBRID
            if "hybrid" in path.name
            else QWEN
        )
        for _ in range(40):
            chars = list(text)
            for _ in range(random_.randrange(1, 30)):
                at = random_.randrange(len(chars))
                chars[at] = random_.choice(
                    ["", chars[at] * 2, "0", "9", "\n", "-", "\x00", "x", chars[at - 1]]
                )
            survives("".join(chars), model)


@given(st.integers(1, 40_000), st.integers(1, 300_000))
def test_a_log_that_the_formulas_wrote_agrees(blocks, length):
    """Oracle the other way round: print what an engine would, from a number of blocks, and read it back."""
    block = HYBRID.block_bytes(16)
    plan = HYBRID.plan(16)
    text = (
        f"Available KV cache memory: {blocks * block / 2**30:.2f} GiB\n"
        f"GPU KV cache size: {plan.logged_tokens(blocks, length):,} tokens\n"
        f"Maximum concurrency for {length:,} tokens per request: {plan.concurrency(blocks, length):.2f}x\n"
    )
    assert engine_report(text, HYBRID).verdict == "agrees", text
