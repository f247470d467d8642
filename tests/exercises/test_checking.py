"""check: states, sentences, and that it never raises."""

import json

import pytest

from kvlab.exercises import check, get, store
from kvlab.exercises.registry import define


@pytest.fixture
def translate():
    exercise = get("03.translate")
    return define(exercise, exercise.solution)


def test_a_right_answer_passes_and_is_said_once(translate, capsys):
    result = check("03.translate", translate)
    assert result and result.state == "passed"
    assert capsys.readouterr().out.count("03.translate") == 1
    assert store.load()["exercises"]["03.translate"]["state"] == "passed"


def test_a_later_failure_keeps_the_pass(translate):
    check("03.translate", translate)
    assert not check("03.translate", lambda table, size, position: (0, 0))
    entry = store.load()["exercises"]["03.translate"]
    assert entry["state"] == "passed" and entry["tries"] == 2


def test_nothing_is_kept_of_a_stub(home):
    def translate(block_table, block_size, position):
        """My own words."""
        ...

    assert check("03.translate", translate).state == "not attempted"
    assert not (home / "progress.json").exists()


@pytest.mark.parametrize("answer", [None, ..., lambda *a: ..., lambda *a: None])
def test_other_faces_of_nothing(answer):
    state = check("03.translate", answer).state
    assert state in ("not attempted", "failed")
    assert state == "not attempted" or answer(1) is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("03.translat", min), 'did you mean "03.translate"?'),
        (("qqqqqq", min), "There are: "),
        ((3, min), "text such as"),
        ((None,), "text such as"),
        (("03.translate",), 'pass your answer too: check("03.translate", translate)'),
        (("03.translate", (1, 2)), "your function itself, without calling it"),
        (("03.translate", int), "your function itself, without calling it"),
        (("04.manager", 3), "your class itself"),
        (("03.worked", 3), "keep the four lines"),
        (("03.worked", {"position 0": (5, 0)}), "keep the four lines"),
    ],
)
def test_wrong_arguments_get_a_sentence(arguments, says, capsys):
    result = check(*arguments)
    assert says in result.message and says in capsys.readouterr().out
    assert result.state in ("not attempted", "failed")


def test_partly_filled_values(capsys):
    answer = {"position 0": (5, 0), "position 6": (2, 2), "position 11": ..., "wasted at length 10": ...}
    assert "still open: position 11, wasted at length 10" in check("03.worked", answer).message
    answer["position 6"] = (2, 3)
    assert check("03.worked", answer).state == "failed"


@pytest.mark.parametrize("id", ["03.translate", "03.slot_mapping", "04.append_slot", "04.check_books"])
@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, RecursionError, ValueError])
def test_whatever_is_raised_is_said(id, error, capsys):
    def answer(*args):
        raise error("on purpose")

    result = check(id, answer)
    assert result.state == "failed" and error.__name__ in result.message
    assert 'raise error("on purpose")' in result.message


def test_wrong_number_of_parameters(capsys):
    result = check("03.translate", lambda block_table: block_table)
    assert result.state == "failed" and "TypeError" in result.message


def test_results_that_cannot_be_read(capsys):
    class Odd:
        def __getattr__(self, name):
            raise RuntimeError(name)

        def __repr__(self):
            raise RuntimeError

    assert check("03.translate", lambda *a: Odd()).state == "failed"


def test_a_missing_return_is_suggested():
    assert "is the `return` missing?" in check("03.translate", lambda *a: print(end="")).message


def test_an_unwritable_folder_is_said(translate, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KVLAB_HOME", str(tmp_path / "file"))
    assert check("03.translate", translate)
    assert "could not be kept" in capsys.readouterr().out


def test_progress_file_is_plain_json(translate, home):
    check("03.translate", translate)
    data = json.loads((home / "progress.json").read_text())
    assert data["version"] == 1 and "def translate" in data["exercises"]["03.translate"]["source"]


def test_in_a_notebook_the_sentence_is_a_box(translate, monkeypatch):
    import IPython.display

    from kvlab.exercises import telling

    shown = []
    monkeypatch.setattr(telling, "in_notebook", lambda: True)
    monkeypatch.setattr(IPython.display, "display", lambda data, raw: shown.append(data))
    result = check("03.translate", lambda *a: ("<b>", 0))
    assert result._ipython_display_() is None
    assert "kvlab-failed" in shown[0]["text/html"] and "&lt;b&gt;" in shown[0]["text/html"]
    assert shown[0]["text/plain"].startswith("✗ 03.translate")
