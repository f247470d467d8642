"""`python -m kvlab report LOG`: exit code, the findings in words and in JSON, and what is refused."""

import json
from pathlib import Path

import pytest

from kvlab.__main__ import main

DATA = Path(__file__).parent / "data" / "engine"


def told(capsys, name: str, *arguments) -> tuple[int, str, str]:
    code = main(["report", str(DATA / name), "--known", "qwen2.5-7b", *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_a_log_that_agrees(capsys, tmp_path):
    out = tmp_path / "findings.json"
    code, text, _ = told(capsys, "v026_plain.log", "--weights", "14.19GiB", "--out", str(out))
    assert code == 0
    assert text.endswith("Verdict: agrees.\n") and "[ok] line 8" in text and "kv_dtype float16" in text
    report = json.loads(out.read_text())
    assert report["verdict"] == "agrees" and report["settings"]["engine_version"] == "0.26.0"
    assert len(report["findings"]) == 5


def test_a_log_that_differs(capsys):
    code, text, _ = told(capsys, "wrong_dtype.log")
    assert code == 1
    assert "[XX] line 2" in text and "It would agree with KV in 1 byte" in text
    assert told(capsys, "wrong_dtype.log", "--kv-dtype", "fp8")[0] == 0


def test_missing_lines_and_a_budget_from_the_command_line(capsys):
    code, text, _ = told(capsys, "tokens_only.log")
    assert code == 0 and "[--] missing: Available KV cache memory" in text and "Verdict: not checked." in text
    code, text, _ = told(capsys, "tokens_only.log", "--available", "5.68GiB")
    assert code == 0 and "Verdict: agrees." in text


def test_a_metrics_page(capsys):
    code, text, _ = told(capsys, "v033_metrics.txt", "--available", "5.68GiB")
    assert code == 0 and "1,662 of 6,651 blocks are in use" in text


def test_two_ranks_and_overrides(capsys):
    assert told(capsys, "v033_two_ranks_colour.log")[0] == 0
    assert told(capsys, "v033_two_ranks_colour.log", "--tensor-parallel", "1")[0] == 1
    assert told(capsys, "v026_plain.log", "--block-size", "32", "--kv-dtype", "float32")[0] == 1


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("foreign.log", (), "Looked for lines such as"),
        ("none.log", (), "There is no file"),
        ("", (), "is a folder"),
        ("v026_plain.log", ("--available", "much"), "is not a size"),
        ("v026_plain.log", ("--in-flight", "0"), "--in-flight must be at least 1"),
        ("v026_plain.log", ("--tensor-parallel", "3"), "cannot be divided"),
    ],
)
def test_what_cannot_be_checked_is_a_sentence(capsys, name, arguments, says):
    code, out, err = told(capsys, name, *arguments)
    assert (code, out) == (2, "") and says in err and err.count("\n") == 1
