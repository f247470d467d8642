"""`python -m kvlab size`: the figures of the article's log from its command line, and what is refused."""

import json

import pytest

from kvlab.__main__ import main

CONFIG = {
    "model_type": "qwen2",
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "hidden_size": 3584,
    "torch_dtype": "bfloat16",
    "max_position_embeddings": 32768,
}


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIG))
    return str(file)


def sized(capsys, tmp_path, *arguments) -> tuple[dict, str]:
    out = tmp_path / "report.json"
    assert main(["size", *arguments, "--out", str(out)]) == 0
    return json.loads(out.read_text()), capsys.readouterr().out


def refused(capsys, *arguments) -> str:
    assert main(["size", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1
    return shown.err


def test_the_log_of_the_article(capsys, tmp_path, config):
    report, table = sized(
        capsys, tmp_path, "--config", config, "--available", "6103236608", "--block-size", "16",
        "--max-len", "8192", "--kv-dtype", "float16",
    )  # fmt: skip
    expected = {
        "block_size": 16,
        "num_gpu_blocks": 6_652,
        "capacity_tokens": 106_432,
        "per_token_bytes": 57_344,
        "kv_bytes_recomputed": 6_103_236_608,
        "max_concurrency_at_max_len": 6_652 / 512,
        "remainder_bytes": 0,
        "usable_blocks": 6_651,
    }
    assert {key: report[key] for key in expected} == expected
    hundred = report["fragmentation"][0]
    assert (hundred["tokens"], hundred["wasted_slots"], hundred["share_of_tokens"]) == (100, 12, 0.12)
    for shown in ("106,432 tokens", "12.99 at once (6,652 / 512 blocks)", "917,504 B", "12.00%"):
        assert shown in table


def test_a_rounded_budget_gives_a_range(capsys, tmp_path, config):
    report, table = sized(capsys, tmp_path, "--config", config, "--available", "5.68GiB", "--max-len", "8192")
    assert report["num_gpu_blocks"] == 6_647
    assert report["num_gpu_blocks_if_rounded"] == [6_641, 6_653]
    assert "6,641 to 6,653: the budget is rounded" in table
    assert report["kv_dtype"] == "bfloat16"


def test_memory_utilization_and_weights(capsys, tmp_path, config):
    report, table = sized(
        capsys, tmp_path, "--config", config, "--memory", "24GiB", "--utilization", "90%",
        "--weights", "14.19GiB", "--rest", "1.73GiB",
    )  # fmt: skip
    account = report["memory"]
    assert account["budget"] == 24 * 2**30 * 9 // 10
    assert account["weights"] + account["kv"] + account["rest"] == account["budget"]
    assert report["available_bytes"] == account["kv"]
    assert report["max_len"] == 32_768
    assert "weights 14.19 GiB, kv 5.68 GiB, rest 1.73 GiB, outside 2.40 GiB" in table


def test_both_budgets_give_the_account_of_the_log(capsys, tmp_path, config):
    report, _ = sized(
        capsys, tmp_path, "--config", config, "--memory", "23.99GiB", "--weights", "14.19GiB",
        "--available", "5.68GiB",
    )  # fmt: skip
    assert f"{report['memory']['rest'] / 2**30:.2f}" == "1.72"


def test_fp8_and_ranks(capsys, tmp_path, config):
    fp8, _ = sized(capsys, tmp_path, "--config", config, "--available", "6103695360", "--kv-dtype", "fp8")
    assert (fp8["num_gpu_blocks"], fp8["capacity_tokens"]) == (13_305, 212_880)
    two, _ = sized(capsys, tmp_path, "--config", config, "--available", "6GiB", "--tensor-parallel", "2")
    assert two["per_token_bytes"] == 28_672 and two["num_kv_heads"] == 2


def test_a_hybrid_model(capsys, tmp_path):
    report, table = sized(
        capsys, tmp_path, "--known", "qwen3.5-4b", "--available", "10GiB", "--max-len", "8192"
    )
    assert report["layers"] == {"full": 8, "linear": 24}
    assert (report["per_token_bytes"], report["block_size"]) == (32_768, 528)
    assert [group["layers"] for group in report["groups"]] == [8, 8, 8, 8]
    assert "4 layer groups share the pool" in table


def test_a_request_that_can_never_run_is_pointed_out(capsys, tmp_path, config):
    exact = str(512 * 917_504)
    report, table = sized(capsys, tmp_path, "--config", config, "--available", exact, "--max-len", "8192")
    assert report["max_concurrency_at_max_len"] == 1
    assert "wait for ever" in report["problem"] and "wait for ever" in table
    report, _ = sized(capsys, tmp_path, "--known", "gemma-2-9b", "--available", "20MiB", "--max-len", "8192")
    assert "needs" in report["problem"]


def test_a_checkpoint_tells_its_weights(capsys, tmp_path, model_path):
    report, _ = sized(capsys, tmp_path, "--model", str(model_path), "--memory", "1GiB", "--max-len", "2048")
    assert report["per_token_bytes"] == 23_040
    assert 90e6 < report["memory"]["weights"] < 98_362_432


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--available", "5.68"], "has no unit"),
        (["--available", "24G"], "can mean"),
        (["--available", "lots"], "is not a size"),
        (["--available", "900KiB", "--max-len", "8192"], "can serve nothing"),
        (["--available", "1B"], "can serve nothing"),
        (["--memory", "24GiB"], "needs --weights"),
        ([], "Give the budget"),
        (["--memory", "24GiB", "--weights", "30GiB"], "Nothing is left"),
        (["--memory", "8GiB", "--weights", "4GiB", "--available", "5GiB"], "more than 0.9 of 8.00 GiB"),
        (["--memory", "24GiB", "--weights", "1GiB", "--utilization", "1.5"], "at most 1"),
        (["--available", "1GiB", "--block-size", "0"], "--block-size must be at least 1"),
        (["--available", "1GiB", "--max-len", "8k"], "--max-len must be a whole number"),
        (["--available", "1GiB", "--kv-dtype", "fp4"], "not a KV dtype"),
        (["--available", "1GiB", "--tensor-parallel", "3"], "cannot be divided over 3"),
        (["--available", "1GiB", "--out", "/nonexistent/report.json"], "No such file"),
    ],
)
def test_nonsense_is_refused_in_one_sentence(capsys, config, arguments, says):
    assert says in refused(capsys, "--config", config, *arguments)


def test_models_that_cannot_be_read(capsys, tmp_path):
    assert "There is no file" in refused(capsys, "--config", str(tmp_path / "no.json"), "--available", "1GiB")
    assert "There are: opt-13b" in refused(capsys, "--known", "gpt-9", "--available", "1GiB")
    assert "There is no folder" in refused(capsys, "--model", str(tmp_path / "no"), "--available", "1GiB")
    assert "give --max-len" in refused(capsys, "--known", "llama-4-scout", "--available", "1GiB")
    with pytest.raises(SystemExit) as stopped:
        main(["size", "--available", "1GiB"])
    assert stopped.value.code == 2
