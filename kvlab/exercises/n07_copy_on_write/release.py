"""07.release: drop one holder; a block is free when the last one has gone."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.n04_block_manager.books import books, expect_books, told
from kvlab.exercises.n07_copy_on_write.shared import shared_with
from kvlab.exercises.trial import Trial

STUB = '''\
def release(self, request_id):
    """Forget the request. Each distinct block of its table has one holder less.

    A block whose count reaches 0 joins the right end of `self.free`, once, in the order of the
    table. A block that others still hold stays where it is.

    Raises:
        KeyError: no such request. Nothing is changed.

    Worked line: A holds [7, 1], B holds [7, 3]; release("B") -> 3 is free, the count of 7 is 1.
    """
    ...  # about 7 lines
'''

SOLUTION = '''\
def release(self, request_id):
    """One holder less for each distinct block; those with none left are free again."""
    if request_id not in self.tables:
        raise KeyError(f"no request {request_id!r}")
    for block in dict.fromkeys(self.tables.pop(request_id)):
        self.counts[block] -= 1
        if self.counts[block] == 0:
            self.free.append(block)
    del self.lengths[request_id]
'''

HINTS = (
    "Notebook 04 put every block back. Now each block's count falls by one, and only those at 0 go back.",
    "`dict.fromkeys(table)` names each block once and keeps the order, which a set does not.",
)

_CASES = [
    ({"A": [7, 1], "B": [7, 3]}, {"A": 7, "B": 7}, [4, 0, 2, 5, 6], 4, "BA"),
    ({"A": [0, 1, 0, 1], "B": [0, 1, 0, 1]}, {"A": 8, "B": 8}, [2], 2, "AB"),
    ({"A": [3, 0], "B": [3, 0], "C": [3, 1]}, {"A": 3, "B": 3, "C": 4}, [2], 2, "CAB"),
]


def check(trial: Trial) -> str:
    for tables, lengths, free, block_size, order in _CASES:
        pool = shared_with(tables, lengths, free, block_size)
        for request_id in order:
            given, due = f"{told(pool)}, release({request_id!r})", books(pool)
            table = list(dict.fromkeys(due["tables"].pop(request_id)))
            del due["lengths"][request_id]
            for block in table:
                due["counts"][block] -= 1
            gone = [block for block in table if not due["counts"][block]]
            due["free"] += gone
            stay = [block for block in table if block not in gone]
            why = f"of {request_id}'s blocks nobody else holds {gone}, and others hold {stay}"
            trial.call(pool, request_id, given=given)
            expect_books(pool, due, given=given, because=why)
        given, before = f"{told(pool)}, release('Z')", books(pool)
        trial.raises(KeyError, pool, "Z", given=given, because="there is no such request")
        expect_books(pool, before, given=given, because="a call that raises must leave everything as it was")
    return "The last holder gives a block back, and nobody earlier."


_DROP = "        self.counts[block] -= 1\n"
_ZERO = "        if self.counts[block] == 0:\n            self.free.append(block)\n"

exercise = Exercise(
    id="07.release",
    title="Release: the last holder gives the block back",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "early free: notebook 04's release",
            edited(SOLUTION, _ZERO, "        self.free.append(block)\n"),
            says="expected free [4, 0, 2, 5, 6, 3] afterwards, because of B's blocks nobody else holds [3], "
            "and "
            "others hold [7]; got [4, 0, 2, 5, 6, 7, 3]",
        ),
        WrongAnswer("lost decrement", edited(SOLUTION, _DROP, ""), says="expected free [4, 0, 2, 5, 6, 3]"),
        WrongAnswer(
            "looks before it lowers",
            edited(SOLUTION, _DROP + _ZERO, _ZERO + _DROP),
            says="expected free [4, 0, 2, 5, 6, 3] afterwards",
        ),
        WrongAnswer(
            "drops a block as often as the table names it",
            edited(SOLUTION, "dict.fromkeys(self.tables.pop(request_id))", "self.tables.pop(request_id)"),
            says="release('A'): expected free [2] afterwards",
        ),
        WrongAnswer(
            "one count for all",
            edited(SOLUTION, "self.counts[block] == 0", "sum(self.counts) == 0"),
            says="others hold [7]; got [4, 0, 2, 5, 6]",
        ),
        WrongAnswer(
            "keeps the length",
            edited(SOLUTION, "    del self.lengths[request_id]\n", ""),
            says="expected lengths {'A': 7} afterwards",
        ),
        WrongAnswer(
            "unknown request ignored",
            edited(SOLUTION, '        raise KeyError(f"no request {request_id!r}")\n', "        return\n"),
            says="expected a KeyError, because there is no such request; nothing was raised",
        ),
    ],
)
