"""04.check_books: the rule that every block is in exactly one place, as code naming a block that is not."""

from kvlab.block_pool import InvariantError
from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.n04_block_manager.books import blocks_with, books, expect_books, told
from kvlab.exercises.trial import Trial

STUB = '''\
def check_books(self):
    """Verify that every block is in exactly one place: once on the free list, or once in one table.

    Raises:
        InvariantError: a block is nowhere (a leak), twice on the free list (a double free), free
            and in a table, or in two tables (shared by mistake). The message names the block.

    Worked line: 3 blocks, free [2], table A [0] -> InvariantError naming block 1.
    """
    ...  # about 6 lines; self has num_blocks, free, tables
'''

SOLUTION = '''\
def check_books(self):
    """Raise InvariantError unless every block is in exactly one place."""
    places = list(self.free)
    for table in self.tables.values():
        places += table
    for block in range(self.num_blocks):
        if places.count(block) != 1:
            raise InvariantError(f"block {block} is in {places.count(block)} places")
'''

HINTS = (
    "Put the free list and all tables into one long list of block ids. In sound books each id from 0 to"
    " `self.num_blocks - 1` is in it exactly once.",
    "Loop over `range(self.num_blocks)`, not over the list: a block that leaked is in no list at all. "
    "`list.count`"
    " or `collections.Counter` counts.",
)

# tables, lengths, free list
_SOUND = [
    ({}, {}, [0, 1, 2, 3]),
    ({"A": [2, 0], "B": [3]}, {"A": 3, "B": 1}, [1]),
    ({"A": [1], "B": [3], "C": [0]}, {"A": 2, "B": 2, "C": 1}, [2]),
    ({"A": [3, 1, 0, 2]}, {"A": 8}, []),
]
# what it is, tables, lengths, free list, the block, and why it is wrong
_BROKEN = [
    ("a leak", {"A": [2, 0]}, {"A": 3}, [1], 3, "block 3 is neither free nor in any table"),
    ("a double free", {"A": [2, 0]}, {"A": 3}, [1, 3, 1], 1, "block 1 is on the free list twice"),
    ("shared by mistake", {"A": [2, 0], "B": [3, 0]}, {"A": 3, "B": 3}, [1], 0, "block 0 is in both tables"),
    ("free, yet in use", {"A": [2, 0]}, {"A": 3}, [0, 1, 3], 0, "block 0 is free and in the table of A"),
    ("twice in one table", {"A": [2, 2]}, {"A": 3}, [0, 1, 3], 2, "block 2 is in the table of A twice"),
    ("a leak of the last block", {}, {}, [0, 1, 2], 3, "block 3 is neither free nor in any table"),
    (
        "a leak beside a double free",
        {"A": [0]},
        {"A": 1},
        [1, 2, 2],
        None,
        "block 2 is there twice and block 3 not at all",
    ),
]


def check(trial: Trial) -> str:
    for tables, lengths, free in _SOUND:
        blocks = _pool(tables, lengths, free)
        given, before = f"sound books: {told(blocks)}", books(blocks)
        trial.call(blocks, given=given)
        expect_books(blocks, before, given=given, because="a check only looks")
    for name, tables, lengths, free, block, because in _BROKEN:
        blocks = _pool(tables, lengths, free)
        given = f"{name}: 4 blocks, {told(blocks)}"
        error = trial.raises(InvariantError, blocks, given=given, because=because)
        if block is not None and str(block) not in str(error):
            raise Refused(
                f"{given}: expected a message that names block {block}, because {because}; got "
                f"{str(error)!r}."
            )
    return "Leak, double free and sharing by mistake are all caught, and sound books pass."


def _pool(tables: dict, lengths: dict, free: list[int]):
    blocks = blocks_with(tables, lengths, free, 2)
    blocks.num_blocks = 4
    return blocks


exercise = Exercise(
    id="04.check_books",
    title="Catch a leak, a double free, a block shared by mistake",
    setup="from kvlab import InvariantError",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "only adds up the numbers",
            edited(
                SOLUTION,
                "    for block in range(self.num_blocks):\n        if places.count(block) != 1:\n"
                '            raise InvariantError(f"block {block} is in {places.count(block)} places")\n',
                "    if len(places) != self.num_blocks:\n"
                '        raise InvariantError(f"{sorted(places)} of 0 to {self.num_blocks - 1}")\n',
            ),
            says="a leak beside a double free",
        ),
        WrongAnswer(
            "looks at the blocks that are there",
            edited(SOLUTION, "range(self.num_blocks)", "places"),
            says="a leak: 4 blocks",
        ),
        WrongAnswer(
            "compares sets",
            edited(SOLUTION, "places.count(block) != 1", "block not in set(places)"),
            says="a double free: 4 blocks",
        ),
        WrongAnswer(
            "forgets the free list",
            edited(SOLUTION, "places = list(self.free)", "places = []"),
            says="sound books",
        ),
        WrongAnswer(
            "one block short",
            edited(SOLUTION, "range(self.num_blocks)", "range(self.num_blocks - 1)"),
            says="block 3 is neither free nor in any table",
        ),
        WrongAnswer(
            "says nothing",
            edited(
                SOLUTION,
                'raise InvariantError(f"block {block} is in {places.count(block)} places")',
                "return False",
            ),
            says="expected an InvariantError, because block 3 is neither",
        ),
        WrongAnswer(
            "does not name the block",
            edited(SOLUTION, 'f"block {block} is in {places.count(block)} places"', '"the books are wrong"'),
            says="expected a message that names block 3",
        ),
        WrongAnswer(
            "adds to the free list itself",
            edited(SOLUTION, "list(self.free)", "self.free"),
            says="a check only looks",
        ),
    ],
)
