"""One step of beam search as moves on tables: who is released, who is forked, and in which order."""

from itertools import count

import pytest

from kvlab.beam_tables import Moves, carry_out, plan_moves


class Calls:
    def __init__(self):
        self.made = []

    def fork(self, parent, child):
        self.made.append(f"fork {parent} {child}")

    def release(self, beam):
        self.made.append(f"release {beam}")


@pytest.mark.parametrize(
    ("live", "parents", "expected"),
    [
        ("AB", "AA", Moves(["B"], [("A", "x0")], ["A", "x0"])),
        ("AB", "BA", Moves([], [], ["B", "A"])),
        ("ABC", "BAB", Moves(["C"], [("B", "x0")], ["B", "A", "x0"])),
        ("A", "AAA", Moves([], [("A", "x0"), ("A", "x1")], ["A", "x0", "x1"])),
        ("ABC", "CCC", Moves(["A", "B"], [("C", "x0"), ("C", "x1")], ["C", "x0", "x1"])),
        ("AB", "", Moves(["A", "B"], [], [])),
    ],
)
def test_moves_by_hand(live, parents, expected):
    moves = plan_moves(list(live), list(parents), (f"x{number}" for number in count()))
    assert moves == expected


def test_the_dead_go_first_and_nobody_is_released_that_is_forked():
    calls = Calls()
    carry_out(Moves(["B", "C"], [("A", "x0"), ("A", "x1")], ["A", "x0", "x1"]), calls)
    assert calls.made == ["release B", "release C", "fork A x0", "fork A x1"]


def test_a_survivor_of_nobody_is_refused():
    with pytest.raises(ValueError, match="beam 'Z' is not live"):
        plan_moves(["A"], ["Z"], iter("x"))
