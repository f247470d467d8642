"""Recorded vLLM 0.33.0 traces: hits, tables, evictions and the whole free queue equal at every line."""

import json
from pathlib import Path

import pytest

from kvlab.__main__ import main
from kvlab.replay import TraceError, read_trace, replay

INIT = '{"op": "init", "num_blocks": 4, "block_size": 2}\n'
TRACES = sorted((Path(__file__).parent / "data" / "traces").glob("*.jsonl"))


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_every_line_of_a_recorded_trace_is_equal(path):
    operations = read_trace(path)
    lines = list(replay(operations))
    assert len(lines) == len(operations) - 1
    for line in lines:
        assert line.differing == [], f"line {line.number}: {line.engine} but ours {line.ours}"
        reported = set(line.operation) - {"op", "rid", "token", "tokens", "preempted"}
        assert set(line.engine) == reported


def test_the_traces_exercise_what_matters():
    operations = [operation for path in TRACES for operation in read_trace(path)]
    assert len(TRACES) == 3
    assert sum(bool(operation.get("hit_tokens")) for operation in operations) > 50
    assert sum(bool(operation.get("evicted")) for operation in operations) > 50
    assert sum(operation.get("ok") is False for operation in operations) > 50


@pytest.mark.parametrize("field", ["hit_tokens", "blocks", "new", "evicted", "free", "free_q"])
def test_one_changed_value_is_found(field, tmp_path, capsys):
    operations = read_trace(TRACES[0])
    index = next(i for i, operation in enumerate(operations) if i > 20 and operation.get(field))
    value = operations[index][field]
    operations[index][field] = value + 1 if isinstance(value, int) else [*value[::-1], 0]
    changed = tmp_path / "changed.jsonl"
    changed.write_text("\n".join(map(json.dumps, operations)))
    first = next(line for line in replay(read_trace(changed)) if line.differing)
    assert (first.number, first.differing) == (index + 1, [field])
    assert main(["replay", str(changed)]) == 1
    said = capsys.readouterr().out
    assert f"line {index + 1}: the first difference" in said
    assert f"They differ in {field}; all {index} lines before are equal." in said


def test_a_file_that_is_no_text_is_told_so(tmp_path, capsys):
    path = tmp_path / "binary.jsonl"
    path.write_bytes(b"\xc1\x00\xff\n")
    assert main(["replay", str(path)]) == 2
    assert "line 1 is not JSON" in capsys.readouterr().out


def test_the_command_says_that_all_is_equal(capsys):
    assert main(["replay", *map(str, TRACES)]) == 0
    assert capsys.readouterr().out.count("are all equal") == 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the first line must be the 'init'"),
        ("hello", "line 1 is not JSON"),
        ("[1]", "line 1 has no 'op'"),
        ('{"op": "new"}', "the first line must be the 'init'"),
        (
            '{"op": "init", "num_blocks": 4, "block_size": 2}\n{"op": "jump"}',
            "line 2: unknown operation 'jump'",
        ),
        (
            '{"op": "init", "num_blocks": 4, "block_size": 2}\n{"op": "new", "rid": "a"}',
            "lacks or misnames tokens",
        ),
        (INIT + '{"op": "jump"}', "line 2: unknown operation 'jump'"),
        (INIT + '{"op": "new", "rid": "a"}', "line 2: new lacks or misnames tokens"),
        (INIT + '{"op": "free", "rid": "a"}', "no request 'a'"),
        (INIT + '{"op": "new", "rid": "a", "tokens": []}', "line 2: request 'a': append at least 1 token"),
        ('{"op": "init", "num_blocks": 0, "block_size": 2}', "line 1: num_blocks must leave"),
    ],
)
def test_a_foreign_file_is_told_what_is_wrong(text, says, tmp_path, capsys):
    path = tmp_path / "foreign.jsonl"
    path.write_text(text)
    with pytest.raises(TraceError, match=says):
        list(replay(read_trace(path)))
    assert main(["replay", str(path)]) == 2
    assert main(["replay", str(tmp_path / "absent.jsonl")]) == 2
    assert "check the path" in capsys.readouterr().out
