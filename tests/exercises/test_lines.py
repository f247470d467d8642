"""Values under given names, and calls whose mistakes are named."""

import pytest

from kvlab.exercises.exercise import Refused, Untouched
from kvlab.exercises.lines import judge_lines
from kvlab.exercises.mistaken import gives
from kvlab.exercises.trial import Trial

DUE = {"one": (1, "it is the first"), "two": (2, "it follows one")}


def _judge(answer):
    judge_lines(Trial(answer, "`numbers`"), DUE, "numbers")


def test_right_lines_pass():
    _judge({"one": 1, "two": 2})


@pytest.mark.parametrize("answer", [{"one": ..., "two": ...}, {"one": None, "two": ...}])
def test_open_lines_are_no_attempt(answer):
    with pytest.raises(Untouched, match="fill in the 2 lines of `numbers`"):
        _judge(answer)


def test_some_open_lines_are_named():
    with pytest.raises(Untouched, match="right so far; still open: two"):
        _judge({"one": 1, "two": ...})


def test_the_first_wrong_line_is_refused_with_its_reason():
    with pytest.raises(Refused, match="two: expected 2, because it follows one; got 3"):
        _judge({"one": ..., "two": 3})


@pytest.mark.parametrize("answer", [{"one": 1}, [1, 2], {"one": 1, "two": 2, "three": 3}])
def test_other_lines_are_refused(answer):
    with pytest.raises(Refused, match="keep the lines of `numbers`"):
        _judge(answer)


def _gives(answer, expected=4):
    trial = Trial(answer, "`square`")
    mistakes = {"that doubles": 2 * 3, "that is right, and no mistake": 9}
    gives(trial, 3, expected=expected, given="3", because="3 * 3 is 9", mistakes=mistakes)


def test_a_known_mistake_is_named():
    with pytest.raises(Refused, match=r"3: expected 9, because 3 \* 3 is 9; got 6: that doubles\."):
        _gives(lambda x: 2 * x, expected=9)


def test_other_mistakes_get_the_plain_sentence():
    with pytest.raises(Refused, match=r"got 5\."):
        _gives(lambda x: 5, expected=9)
    with pytest.raises(Refused, match="is the `return` missing"):
        _gives(lambda x: None, expected=9)


def test_a_right_answer_is_never_taken_for_a_mistake():
    _gives(lambda x: x * x, expected=9)


def test_an_exception_becomes_a_sentence():
    with pytest.raises(Refused, match="your `square` raised ZeroDivisionError"):
        _gives(lambda x: x / 0)
