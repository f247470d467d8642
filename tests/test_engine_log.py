"""Single lines of a log: what is read from each, whatever stands around it."""

import pytest

from kvlab.engine_log import clean, read_log, smallest_budget


def only(text: str):
    (line,) = read_log(text).lines
    return line


@pytest.mark.parametrize(
    ("shown", "expected"),
    [("106,432", 106_432), ("106432", 106_432), ("106_432", 106_432), ("106 432", 106_432), ("16", 16)],
)
def test_thousands_separators(shown, expected):
    assert only(f"GPU KV cache size: {shown} tokens").values == (expected,)


@pytest.mark.parametrize("shown", ["-5", "1.5", "many", "", "1" * 16, "0x10"])
def test_what_is_not_a_count(shown):
    assert read_log(f"GPU KV cache size: {shown} tokens").lines == ()


def test_colours_prefixes_and_ranks():
    rank = "web | \x1b[36m(Worker_TP1 pid=42, ip=192.0.2.1)\x1b[0m \x1b]0;t\x07"
    line = only(rank + "INFO Available KV cache memory: 5.68 GiB")
    assert (line.kind, line.values, line.rank) == ("available", ("5.68 GiB",), "Worker_TP1")
    assert "\x1b" not in line.text and "\x07" not in line.text
    assert clean("a\x00b\tc") == "a b c"


def test_line_numbers_count_every_line():
    assert [line.number for line in read_log("\n\nCheckpoint size: 1 GiB\n\nGPU blocks: 7").lines] == [3, 5]


def test_settings_and_version():
    log = read_log(
        "Initializing a V1 LLM engine (v0.26.0) with config: dtype=torch.float16, kv_cache_dtype=auto, "
        "max_seq_len=8192, tensor_parallel_size=2\n"
        "non-default args: {'block_size': 32, 'dtype': 'float32'}\n"
        "quantization_dtype=int4 my_block_size=7\n"
    )
    assert log.version == "0.26.0"
    assert log.settings == {
        "dtype": "torch.float16",
        "kv_cache_dtype": "auto",
        "max_seq_len": "8192",
        "tensor_parallel_size": "2",
        "block_size": "32",
    }
    assert log.setting("absent", "block_size") == "32"
    assert read_log("vLLM API server version 0.33.0").version == "0.33.0"


def test_ranks_are_counted_by_the_workers_names():
    line = "(Worker_PP0_TP{} pid=4) INFO Available KV cache memory: 5.68 GiB\n"
    assert read_log(line.format(0) + line.format(3)).tensor_ranks() == 4
    assert read_log("(EngineCore pid=4) Available KV cache memory: 5.68 GiB").tensor_ranks() == 1


def test_the_poorest_rank():
    log = read_log(
        "".join(f"Available KV cache memory: {size}\n" for size in ("9.1 GiB", "900 MiB", "2 GiB"))
    )
    assert smallest_budget(log).values == ("900 MiB",)
    assert smallest_budget(read_log("")) is None


def test_two_figures_on_one_line_are_both_read():
    kinds = [line.kind for line in read_log("Checkpoint size: 14.19 GiB. GPU KV cache size: 16 tokens").lines]
    assert kinds == ["tokens", "checkpoint"]


@pytest.mark.parametrize("unit", ["1", "1,", "'", "(a", "vllm:x{", '"\\', "dtype=", "\x1b[", " "])
def test_long_lines_do_not_blow_up(unit):
    """A pattern that backtracks would not come back from these."""
    assert read_log("GPU KV cache size: " + unit * 200_000).lines == ()
