"""What counts as the same, and what a refusal says."""

import numpy as np
import pytest
import torch

from kvlab import Slot
from kvlab.exercises.exercise import Refused
from kvlab.exercises.trial import Trial, same


@pytest.mark.parametrize(
    ("got", "expected", "equal"),
    [
        ((1, 2), (1, 2), True),
        ([1, 2], (1, 2), True),
        (Slot(1, 2), (1, 2), True),
        ((np.int64(1), 2), (1, 2), True),
        (np.array([[1, -1]]), [[1, -1]], True),
        (torch.tensor([1, 2]), [1, 2], True),
        ((1.0, 2), (1, 2), False),
        ((True, 2), (1, 2), False),
        ((1, 2, 3), (1, 2), False),
        (None, (1, 2), False),
        ("12", (1, 2), False),
        ({"a": [1]}, {"a": [1]}, True),
        ({"a": [1], "b": []}, {"a": [1]}, False),
    ],
)
def test_same(got, expected, equal):
    assert same(got, expected) is equal


def test_an_object_that_cannot_be_compared_is_not_the_same():
    class Odd:
        def __eq__(self, other):
            raise RuntimeError

        __hash__ = None

    assert not same(Odd(), 3) and not same((Odd(), 2), (1, 2))


def test_a_refusal_gives_input_expectation_reason_and_what_came():
    with pytest.raises(Refused) as refused:
        Trial(lambda n: n + 1, "`f`").gives(3, expected=3, given="n 3", because="nothing is added")
    assert str(refused.value) == "n 3: expected 3, because nothing is added; got 4."


@pytest.mark.parametrize(
    "argument", [[1, 2], {"a": 1}, np.arange(3), torch.arange(3)], ids=lambda a: type(a).__name__
)
def test_edited_inputs_are_noticed(argument):
    def edit(argument):
        argument["a" if isinstance(argument, dict) else 0] = 9

    with pytest.raises(Refused, match="changed its argument number 1 from"):
        Trial(edit, "`edit`").call(argument, given="x")


def test_raises_wants_the_named_exception():
    trial = Trial(lambda n: [][n], "`f`")
    assert isinstance(trial.raises(IndexError, 3, given="g", because="b"), IndexError)
    with pytest.raises(Refused, match="g: expected a KeyError, because b; your `f` raised IndexError"):
        trial.raises(KeyError, 3, given="g", because="b")
    with pytest.raises(Refused, match="nothing was raised"):
        Trial(lambda: None, "`f`").raises(KeyError, given="g", because="b")
