"""predict and reveal: kept, judged after, never in the way."""

import ipywidgets
import pytest

from kvlab.exercises import predict, reveal, store


def _kept(id):
    return store.load()["predictions"].get(id, {}).get("answer")


@pytest.mark.parametrize("answer", [(1, 2), "1, 2", "(1, 2)", "block 1, slot 2", [1, 2], "1 2"])
def test_many_ways_to_say_the_same(answer, capsys):
    predict("03.token6", answer=answer)
    reveal("03.token6")
    out = capsys.readouterr().out
    assert "✓ You predicted" in out and "6 // 4 = 1" in out


def test_a_wrong_prediction_is_told_with_the_right_one(capsys):
    predict("03.token6", answer=(2, 1))
    reveal("03.token6")
    assert "✗ You predicted (2, 1); it is (1, 2): 6 // 4 = 1" in capsys.readouterr().out


def test_no_prediction_is_fine(capsys):
    reveal("03.token6")
    assert "No prediction yet, and that is fine." in capsys.readouterr().out


def test_the_form_keeps_what_is_typed():
    form = predict("03.token6", "block, slot")
    field, button, said = form.children[1].children
    assert isinstance(field, ipywidgets.Text) and field.placeholder == "block, slot"
    field.value = "1, 2"
    assert _kept("03.token6") == "1, 2" and "Kept: 1, 2" in said.value
    field.value = "who knows"
    assert _kept("03.token6") == "1, 2" and "holds no number" in said.value
    button.click()
    assert _kept("03.token6") == "1, 2"
    again = predict("03.token6")
    assert again.children[1].children[0].value == "1, 2"


def test_choices_are_buttons_and_none_is_pressed_at_first():
    form = predict("03.late")
    field, said = form.children[1].children
    assert isinstance(field, ipywidgets.ToggleButtons) and field.value is None
    assert _kept("03.late") is None
    field.value = field.options[0]
    assert _kept("03.late") == field.options[0] and "Kept" in said.value


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: predict("03.tokn6"), 'did you mean "03.token6"?'),
        (lambda: reveal("03.tokn6"), 'did you mean "03.token6"?'),
        (lambda: predict(5), "text such as"),
        (lambda: predict("03.late", answer="perhaps"), "not one of the choices"),
        (lambda: predict("03.token6", answer=""), "Nothing is kept yet"),
        (lambda: predict("03.token6", answer=None), "holds no number"),
    ],
)
def test_mistakes_get_a_sentence(call, says, capsys):
    assert call() is None
    assert says in capsys.readouterr().out


def test_the_question_is_escaped_and_the_markup_has_no_fixed_ink():
    form = predict("03.token6")
    assert "color" not in form.children[0].value
