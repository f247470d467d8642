"""Samples of a metrics page: labels, several engines, and what is not a sample."""

from kvlab.engine_metrics import is_metrics_page, metrics_findings, read_metrics
from kvlab.engine_report import engine_report
from kvlab.model_shapes import named_shape

INFO = 'vllm:cache_config_info{block_size="16",cache_dtype="fp8",num_gpu_blocks="101"} 1.0\n'
QWEN = named_shape("qwen2.5-7b")


def test_labels_with_quotes_and_braces():
    page = read_metrics('vllm:cache_config_info{model="a\\"b}, {c",num_gpu_blocks="7"} 1 1700000000\n')
    assert page.info_lines == ((1, {"model": 'a\\"b}, {c', "num_gpu_blocks": "7"}),)


def test_the_page_tells_block_size_and_dtype():
    assert read_metrics(INFO).as_settings().settings == {"block_size": "16", "kv_cache_dtype": "fp8"}
    assert engine_report(INFO, QWEN).settings["kv_dtype"] == "fp8"


def test_comments_and_other_samples_are_passed_over():
    assert not is_metrics_page("# HELP vllm:cache_config_info what it is\nprocess_cpu_seconds_total 3\n")
    assert is_metrics_page("\n  " + INFO)
    assert read_metrics("# " + INFO + "vllm:unknown 3\nvllm:num_requests_running{ 3\n").values == {}


def test_usage_is_a_whole_number_of_blocks():
    def usage(shown):
        page = read_metrics(INFO + f"vllm:kv_cache_usage_perc {shown}\n")
        return engine_report(INFO + f"vllm:kv_cache_usage_perc {shown}\n", QWEN).findings[1], page

    assert usage("0.07")[0].says.startswith("7 of 100 blocks are in use")
    assert usage("0.075")[0].verdict == "differs"
    assert usage("NaN")[0].verdict == usage("-0.1")[0].verdict == "differs"
    assert usage("1.0")[0].verdict == "agrees"


def test_hits_are_compared_within_an_engine():
    text = (
        'vllm:prefix_cache_queries_total{engine="0"} 10\nvllm:prefix_cache_queries_total{engine="1"} 50\n'
        'vllm:prefix_cache_hits_total{engine="0"} 20\nvllm:prefix_cache_hits_total{engine="1"} 20\n'
        'vllm:prefix_cache_hits_total{engine="2"} 20\n'
    )
    verdicts = [finding.verdict for finding in engine_report(text, QWEN).findings]
    assert verdicts == ["differs", "note", "not checked", "not checked"]


def test_a_budget_that_the_blocks_do_not_fit():
    report = engine_report(INFO, QWEN, available="1.00 GiB")
    assert report.verdict == "differs" and "1.00 GiB holds" in report.findings[0].says


def test_without_the_number_of_blocks_usage_is_not_checked():
    findings = engine_report("vllm:kv_cache_usage_perc 0.5\n", QWEN).findings
    assert [finding.verdict for finding in findings] == ["not checked", "not checked"]
    assert metrics_findings(read_metrics(""), None)[0].line is None
