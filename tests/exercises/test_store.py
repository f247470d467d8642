"""The progress file: never lost, never half written."""

import json
import os

import pytest

from kvlab.exercises import progress, store


def test_home_is_the_variable_or_the_users_folder(monkeypatch, tmp_path):
    assert store.home() == tmp_path / "learner"
    monkeypatch.delenv("KVLAB_HOME")
    assert store.home().name == "kvlab"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b'{"version": 1}',
        b'{"exercises": 3, "predictions": {}}',
        b'{"exercises": {"03.translate": "passed"}, "predictions": {}}',
    ],
)
def test_an_unreadable_file_is_put_aside_with_a_sentence(content, home, capsys):
    home.mkdir()
    (home / "progress.json").write_bytes(content)
    assert store.load()["exercises"] == {}
    aside = home / "progress.unreadable-1.json"
    assert aside.read_bytes() == content
    assert str(aside) in capsys.readouterr().out
    store.update(lambda data: data["predictions"].update(a={"answer": "1"}))
    assert store.load()["predictions"] == {"a": {"answer": "1"}} and aside.read_bytes() == content


def test_a_second_unreadable_file_does_not_replace_the_first(home):
    home.mkdir()
    for content in (b"first", b"second"):
        (home / "progress.json").write_bytes(content)
        store.load()
    assert (home / "progress.unreadable-1.json").read_bytes() == b"first"
    assert (home / "progress.unreadable-2.json").read_bytes() == b"second"


def test_what_cannot_be_put_aside_is_not_overwritten(home, monkeypatch, capsys):
    home.mkdir()
    (home / "progress.json").write_bytes(b"precious")

    def refuse(*_):
        raise PermissionError("no")

    monkeypatch.setattr(os, "replace", refuse)
    assert not store.update(lambda data: data["exercises"].update(a={}))
    assert (home / "progress.json").read_bytes() == b"precious"
    assert "nothing is kept" in capsys.readouterr().out


def test_a_write_that_fails_leaves_the_old_file(home, monkeypatch, capsys):
    store.update(lambda data: data["exercises"].update(a={"state": "passed"}))

    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", refuse)
    assert not store.update(lambda data: data["exercises"].clear())
    assert store.load()["exercises"] == {"a": {"state": "passed"}}
    assert [file.name for file in home.iterdir()] == ["progress.json"]
    assert "disk full" in capsys.readouterr().out


def test_the_board_counts(home):
    store.update(
        lambda data: data["exercises"].update(
            {
                "03.translate": {"state": "passed"},
                "03.worked": {"state": "failed"},
                "gone": {"state": "passed"},
            }
        )
    )
    store.update(lambda data: data["predictions"].update({"03.token6": {"answer": "1, 2"}}))
    text, markup = str(progress()), progress()._repr_html_()
    assert "03 Address translation: 1 of 4 exercises passed" in text
    assert "✓ 03.translate" in text and "✗ 03.worked" in text and "○ 03.slot_mapping" in text
    assert "03_address_translation.ipynb" in markup and "1 right" in markup
    assert json.loads((home / "progress.json").read_text())["exercises"]["gone"]


def test_the_board_has_no_colours_of_its_own():
    assert "color" not in progress()._repr_html_()
