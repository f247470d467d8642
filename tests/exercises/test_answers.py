"""Answers that passed are kept as text that stands alone, and come back in a later notebook."""

import pytest

from kvlab import BlockManager
from kvlab.exercises import check, get, guard, load_answer, ready, store
from kvlab.exercises.registry import UnknownId, define
from kvlab.exercises.sources import execute


def cell(source, namespace=None):
    """Run a cell's text in a notebook's namespace."""
    namespace = {"__name__": "__main__"} if namespace is None else namespace
    execute(source, namespace)
    return namespace


MANAGER = "\n\n".join(
    ["from kvlab import OutOfBlocks\nfrom kvlab.exercises import manager_from"]
    + [get(id).solution for id in ("04.append_slot", "04.release", "04.append", "04.manager")]
)


def _used(manager):
    slots = [tuple(manager.append_slot(who)[:2]) for who in "AABAB"]
    manager.release("A")
    return slots, manager.block_table("B"), manager.length("B")


def test_the_learners_manager_comes_back(capsys):
    assert check("04.manager", cell(MANAGER)["MyManager"])
    manager = load_answer("04.manager")(8, 2)
    assert "your own answer" in capsys.readouterr().out
    assert _used(manager) == _used(BlockManager(8, 2))
    assert (
        store.load()["exercises"]["04.manager"]["source"] in MANAGER
        or "append_slot=append_slot" in (store.load()["exercises"]["04.manager"]["source"])
    )


def test_without_one_the_solution_comes_with_a_sentence(capsys):
    manager = load_answer("04.manager")(8, 2)
    assert (
        "kvlab's solution of 04.manager, not your own: you have not passed it yet" in capsys.readouterr().out
    )
    assert _used(manager) == _used(BlockManager(8, 2))


def test_helpers_constants_and_imports_come_along(capsys):
    source = """
import math as m
from collections import deque as queue
from kvlab import Slot

SHIFT = 0
NAMES = ("a", "b")

def helper(position, block_size):
    return m.floor(position / block_size) + SHIFT + len(NAMES) - 2

def translate(block_table, block_size: int = SHIFT, position=0) -> Slot:
    if not 0 <= position < len(block_table) * block_size:
        raise IndexError
    queue()
    return Slot(block_table[helper(position, block_size)], position % block_size)
"""
    assert check("03.translate", cell(source)["translate"])
    assert "was not kept" not in capsys.readouterr().out
    assert load_answer("03.translate")([5, 2, 9], 4, 6)[:2] == (2, 2)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            "table = object()\ndef translate(b, B, p):\n    table\n    return solution(b, B, p)",
            "`translate` uses `table`",
        ),
        (
            "def make(q):\n    return lambda b, B, p: (q, solution(b, B, p))[1]\ntranslate = make(1)",
            "cannot be found",
        ),
        (
            "def make(q):\n    def translate(b, B, p):\n        return (q, solution(b, B, p))[1]\n"
            "    return translate"
            "\ntranslate = make(1)",
            "of a function around it",
        ),
    ],
    ids=["session object", "lambda", "closure"],
)
def test_what_cannot_stand_alone_passes_and_says_what_is_missing(source, says, capsys):
    solution = get("03.translate").solution.replace("def translate", "def solution")
    answer = cell(solution + "\n" + source)["translate"]
    assert check("03.translate", answer)
    out = capsys.readouterr().out
    assert "was not kept for later notebooks" in out and says in out
    assert load_answer("03.translate")([5], 4, 0) == (5, 0)
    assert "it passed, but could not be kept" in capsys.readouterr().out


def test_a_class_of_ones_own_passes_but_cannot_be_kept(capsys):
    assert check("04.manager", BlockManager)
    assert "only a class made by `manager_from` can be kept" in capsys.readouterr().out


def test_a_kept_answer_that_no_longer_runs(capsys):
    entry = {"04.manager": {"state": "passed", "source": "import no_such_module"}}
    store.update(lambda data: data["exercises"].update(entry))
    assert _used(load_answer("04.manager")(8, 2)) == _used(BlockManager(8, 2))
    assert "your kept answer no longer runs (ModuleNotFoundError" in capsys.readouterr().out


def test_an_unknown_id():
    with pytest.raises(UnknownId, match=r'did you mean "04.manager"\?'):
        load_answer("04.manger")


def test_ready_hands_back_the_learners_own_or_stands_in_for_a_stub(capsys):
    exercise = get("03.translate")
    wrong = define(exercise, exercise.wrong[0].source)
    assert ready("03.translate", wrong)([7, 1], 4, 6) == wrong([7, 1], 4, 6)
    assert ready("03.translate", wrong, must_pass=True)([7, 1], 4, 6) == (1, 2)
    assert "does not pass yet" in capsys.readouterr().out
    right = define(exercise, exercise.solution)
    assert ready("03.translate", right) is right
    assert capsys.readouterr().out == ""
    endless = define(exercise, next(w for w in exercise.wrong if "never ends" in w.name).source)
    with pytest.raises(guard.TimeUp):
        ready("03.translate", endless)([7, 1], 4, 6)
    stand_in = ready("03.translate", define(exercise, exercise.stub))
    assert stand_in([7, 1], 4, 6) == (1, 2)
    assert "still open" in capsys.readouterr().out
