"""07.fork: a second request with the first one's tokens, which costs no block."""

from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.n04_block_manager.books import books, expect_books, told
from kvlab.exercises.n07_copy_on_write.shared import shared_with
from kvlab.exercises.trial import Trial

STUB = '''\
def fork(self, parent_id, child_id):
    """Make `child_id` a request that shares every block of the parent, the partial one too.

    The child gets a table of its own with the same blocks, and the parent's length. The count
    of each DISTINCT block grows by one, however often the table names it. No block is taken.

    Raises:
        KeyError: no request `parent_id`.
        ValueError: `child_id` is live already.
            Nothing is changed in either case.

    Worked line: tables {"A": [7, 1]}, fork A B
        -> tables {"A": [7, 1], "B": [7, 1]}, and blocks 7 and 1 have a count of 2.
    """
    ...  # about 8 lines; self has tables, lengths, counts
'''

SOLUTION = '''\
def fork(self, parent_id, child_id):
    """The child shares every block of the parent; each distinct block has one more holder."""
    if parent_id not in self.tables:
        raise KeyError(f"no request {parent_id!r}")
    if child_id in self.tables:
        raise ValueError(f"request {child_id!r} is live")
    for block in set(self.tables[parent_id]):
        self.counts[block] += 1
    self.tables[child_id] = list(self.tables[parent_id])
    self.lengths[child_id] = self.lengths[parent_id]
'''

HINTS = (
    "Check both names first, then change three things: counts, tables, lengths. A table is a list: two "
    "requests must not hold the same list object, or one append grows both tables.",
    "`set(table)` names each block once. A count says how many tables hold the block, not how often it is "
    "named.",
)

_CASES = [
    ({"A": [7, 1]}, {"A": 7}, [3, 0, 5, 2, 4, 6], 4, [("A", "B"), ("A", "C"), ("C", "D")]),
    ({"A": [0, 1, 0, 1]}, {"A": 8}, [2, 3], 2, [("A", "B"), ("B", "C")]),
    ({"A": [2], "B": [1, 0]}, {"A": 1, "B": 4}, [], 2, [("B", "C"), ("A", "D")]),
]


def check(trial: Trial) -> str:
    for tables, lengths, free, block_size, forks in _CASES:
        pool = shared_with(tables, lengths, free, block_size)
        for parent, child in forks:
            _forks(trial, pool, parent, child)
    pool = shared_with({"A": [0], "B": [1]}, {"A": 1, "B": 2}, [2], 2)
    for parent, child, error, because in (
        ("Z", "C", KeyError, "there is no request 'Z'"),
        ("A", "B", ValueError, "B is live, and its own tokens would be lost"),
        ("A", "A", ValueError, "A is live: nobody can be their own child"),
    ):
        given, before = f"{told(pool)}, fork({parent!r}, {child!r})", books(pool)
        trial.raises(error, pool, parent, child, given=given, because=because)
        why = "a call that raises must leave everything as it was"
        expect_books(pool, before, given=given, because=why)
    return "A fork costs no block, and each distinct block counts one holder more."


def _forks(trial: Trial, pool, parent: str, child: str) -> None:
    given, due = f"{told(pool)}, fork({parent!r}, {child!r})", books(pool)
    table = due["tables"][parent]
    due["tables"][child], due["lengths"][child] = table, due["lengths"][parent]
    for block in set(table):
        due["counts"][block] += 1
    because = (
        f"{child} starts with the blocks of {parent}, {table}, and each distinct one has one holder more"
    )
    trial.call(pool, parent, child, given=given)
    expect_books(pool, due, given=given, because=because)
    if pool.tables[child] is pool.tables[parent]:
        raise Refused(
            f"{given}: expected a list of its own for {child}, because one append would grow both tables; "
            "got "
            f"the same list object for {parent} and {child}."
        )


_COUNT = "    for block in set(self.tables[parent_id]):\n        self.counts[block] += 1\n"
_LIVE = '    if child_id in self.tables:\n        raise ValueError(f"request {child_id!r} is live")\n'

exercise = Exercise(
    id="07.fork",
    title="Fork: two tables, the same blocks",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "counts each entry of the table",
            edited(SOLUTION, "set(self.tables[parent_id])", "self.tables[parent_id]"),
            says="expected counts [2, 2, 0, 0] afterwards",
        ),
        WrongAnswer(
            "no count at all", edited(SOLUTION, _COUNT, ""), says="expected counts [0, 2, 0, 0, 0, 0, 0, 2]"
        ),
        WrongAnswer(
            "only the last block is counted",
            edited(SOLUTION, "set(self.tables[parent_id])", "self.tables[parent_id][-1:]"),
            says="each distinct one has one holder more; got [0, 2, 0, 0, 0, 0, 0, 1]",
        ),
        WrongAnswer(
            "one list for both",
            edited(SOLUTION, "list(self.tables[parent_id])", "self.tables[parent_id]"),
            says="expected a list of its own for B",
        ),
        WrongAnswer(
            "shares the full blocks only",
            edited(
                SOLUTION,
                "list(self.tables[parent_id])",
                "self.tables[parent_id][: self.lengths[parent_id] // self.block_size]",
            ),
            says="'B': [7, 1]} afterwards",
        ),
        WrongAnswer(
            "starts at length 0",
            edited(SOLUTION, "= self.lengths[parent_id]", "= 0"),
            says="expected lengths {'A': 7, 'B': 7} afterwards",
        ),
        WrongAnswer(
            "takes blocks of its own",
            edited(SOLUTION, "list(self.tables[parent_id])", "[self.free.popleft() for _ in range(2)]"),
            says="because B starts with the blocks of A, [7, 1]",
        ),
        WrongAnswer(
            "a live child is overwritten",
            edited(SOLUTION, _LIVE, ""),
            says="expected a ValueError, because B is",
        ),
        WrongAnswer(
            "counts before it looks at the child",
            edited(SOLUTION, _LIVE, "").replace(_COUNT, _COUNT + _LIVE),
            says="fork('A', 'B'): expected counts [1, 1, 0] afterwards",
        ),
    ],
)
