"""04.release: give a request's blocks back, each of them once."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.n04_block_manager.books import blocks_with, books, expect_books, told
from kvlab.exercises.trial import Trial

STUB = '''\
def release(self, request_id):
    """Forget the request and give its blocks back.

    Its blocks join the right end of `self.free` in the order of the table. Nothing of the request
    stays: neither its table nor its length.

    Raises:
        KeyError: no such request (a second release of the same one, too). Nothing is changed.

    Worked line: free [4], table [7, 1] -> free [4, 7, 1].
    """
    ...  # about 4 lines
'''

SOLUTION = '''\
def release(self, request_id):
    """Forget the request; its blocks join the end of the free list in table order."""
    if request_id not in self.tables:
        raise KeyError(f"no request {request_id!r}")
    self.free.extend(self.tables.pop(request_id))
    del self.lengths[request_id]
'''

HINTS = (
    "`self.tables.pop(request_id)` removes the table and hands it to you in one go; it raises KeyError for an"
    " unknown request by itself.",
    "A deque has `extend`, which appends each block of the table in turn. The length must go as well, or a "
    "new"
    " request of the same name would start in the middle.",
)


def check(trial: Trial) -> str:
    for blocks, order in (
        (blocks_with({"A": [7, 1]}, {"A": 7}, [4, 0, 2, 3, 5, 6], 4), "A"),
        (blocks_with({"A": [2, 0], "B": [3, 1]}, {"A": 3, "B": 4}, [], 2), "BA"),
    ):
        for request_id in order:
            given, due = f"{told(blocks)}, release({request_id!r})", books(blocks)
            table = due["tables"].pop(request_id)
            del due["lengths"][request_id]
            due["free"] += table
            trial.call(blocks, request_id, given=given)
            why = f"{request_id} is gone; its blocks {table} are free again, each once, in the table's order"
            expect_books(blocks, due, given=given, because=why)
        for unknown in (request_id, "Z"):
            given, before = f"{told(blocks)}, release({unknown!r})", books(blocks)
            why = "there is no such request" if unknown == "Z" else "it was released already"
            trial.raises(KeyError, blocks, unknown, given=given, because=why)
            expect_books(
                blocks, before, given=given, because="a call that raises must leave everything as it was"
            )
    return "Every block comes back once, and a second release is refused."


_GIVE = "self.free.extend(self.tables.pop(request_id))"
_KNOWN = '    if request_id not in self.tables:\n        raise KeyError(f"no request {request_id!r}")\n'

exercise = Exercise(
    id="04.release",
    title="Give the blocks back",
    setup="from kvlab import OutOfBlocks",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "length kept",
            edited(SOLUTION, "    del self.lengths[request_id]\n", ""),
            says="expected lengths {} afterwards",
        ),
        WrongAnswer(
            "blocks lost",
            edited(SOLUTION, _GIVE, "del self.tables[request_id]"),
            says="expected free [4, 0, 2, 3, 5, 6, 7, 1] afterwards",
        ),
        WrongAnswer(
            "table kept: freed, yet still in use",
            edited(SOLUTION, _GIVE, "self.free.extend(self.tables[request_id])"),
            says="expected tables {} afterwards",
        ),
        WrongAnswer(
            "freed twice",
            edited(SOLUTION, _GIVE, "self.free.extend(2 * self.tables.pop(request_id))"),
            says="each once, in the table's order; got [4, 0, 2, 3, 5, 6, 7, 1, 7, 1]",
        ),
        WrongAnswer(
            "last block first",
            edited(SOLUTION, _GIVE, "self.free.extend(reversed(self.tables.pop(request_id)))"),
            says="in the table's order; got [4, 0, 2, 3, 5, 6, 1, 7]",
        ),
        WrongAnswer(
            "the left end of the free list",
            edited(SOLUTION, _GIVE, "self.free.extendleft(self.tables.pop(request_id))"),
            says="got [1, 7, 4, 0, 2, 3, 5, 6]",
        ),
        WrongAnswer(
            "the table as one entry",
            edited(SOLUTION, _GIVE, "self.free.append(self.tables.pop(request_id))"),
            says="got [4, 0, 2, 3, 5, 6, [7, 1]]",
        ),
        WrongAnswer(
            "unknown request ignored",
            edited(SOLUTION, '        raise KeyError(f"no request {request_id!r}")\n', "        return\n"),
            says="expected a KeyError, because it was released already; nothing was raised",
        ),
        WrongAnswer(
            "everything released",
            edited(SOLUTION, _KNOWN, "").replace(
                _GIVE,
                "self.free.extend(self.tables.pop(request_id))\n"
                "    for other in list(self.tables):\n        self.free.extend(self.tables.pop(other))",
            ),
            says="release('B'): expected tables {'A': [2, 0]} afterwards",
        ),
    ],
)
