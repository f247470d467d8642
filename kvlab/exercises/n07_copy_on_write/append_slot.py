"""07.append_slot: one more token, into a copy where the last block is shared."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.n04_block_manager.books import books, expect_books, expect_refusal, told
from kvlab.exercises.n07_copy_on_write.shared import shared_with
from kvlab.exercises.trial import Trial

STUB = '''\
def append_slot(self, request_id):
    """The slot for the request's next token, copy-on-write.

    A partial last block that others hold too may not be written. The request then gets a new
    block in its place (left end of `self.free`), the old block's count falls by one, and the
    slot says which block to copy from. After any append the new token's block has a count of 1.

    Returns:
        Slot(block, offset, copied_from): copied_from is the old block's id, None if no copy.

    Raises:
        OutOfBlocks(needed=1, free=0, total=self.num_blocks): a block is needed and none is
            free. Nothing is changed.

    Worked line: B = 4, A and B hold [7, 1], length 7, block 3 next; append_slot("B")
        -> Slot(3, 3, 1).
    """
    ...  # about 11 lines; self.grow(request_id) is your append_slot of notebook 04
'''

SOLUTION = '''\
def append_slot(self, request_id):
    """The slot of the next token; a shared partial block is replaced by a copy first."""
    table = self.tables.get(request_id, [])
    copied_from = None
    if self.lengths.get(request_id, 0) % self.block_size and self.counts[table[-1]] > 1:
        if not self.free:
            raise OutOfBlocks(needed=1, free=0, total=self.num_blocks)
        copied_from = table[-1]
        self.counts[copied_from] -= 1
        self.tables[request_id] = [*table[:-1], self.free.popleft()]
    block, offset = self.grow(request_id)
    self.counts[block] = 1
    return Slot(block, offset, copied_from)
'''

HINTS = (
    "Ask two questions before you let `self.grow` write: is the last block partial (`length % B` is not 0), "
    "and "
    "is its count above 1? Only when both are true there is something to do.",
    "Then swap the last entry of the table for `self.free.popleft()` and lower the old block's count. "
    "`self.grow(request_id)` now finds a last block with room, and whoever writes into a block is its only "
    "holder: `self.counts[block] = 1`.",
)

_SHARED = ({"A": [7, 1], "B": [7, 1], "C": [7, 1]}, {"A": 7, "B": 7, "C": 7}, [3, 0, 5, 2, 4, 6], 4)
_FULL = ({"A": [1, 0], "B": [1, 0]}, {"A": 4, "B": 4}, [2, 3], 2)


def _after(pool, request_id: str) -> tuple[tuple, dict, str]:
    """The slot with its source, the books after one more token, and why."""
    due, copied_from = books(pool), None
    table, length = due["tables"].setdefault(request_id, []), due["lengths"].get(request_id, 0)
    offset = length % pool.block_size
    if not offset:
        table.append(due["free"].pop(0))
        why = f"{length} tokens fill whole blocks, a full block is never copied, and block {table[-1]} is new"
    elif due["counts"][table[-1]] > 1:
        copied_from, count = table[-1], due["counts"][table[-1]]
        table[-1] = due["free"].pop(0)
        due["counts"][copied_from] -= 1
        why = (
            f"block {copied_from} is partial and has {count} holders, so {request_id} goes on in a copy of "
            f"it, block {table[-1]}"
        )
    else:
        why = f"block {table[-1]} has room and only {request_id} holds it, so it is written in place"
    due["counts"][table[-1]] = 1
    due["lengths"][request_id] = length + 1
    return (table[-1], offset, copied_from), due, why


def check(trial: Trial) -> str:
    for pool, order in (
        (shared_with(*_SHARED), "BCAAB"),
        (shared_with(*_FULL), "AB"),
        (shared_with({"A": [1]}, {"A": 1}, [0, 2], 2), "AABA"),
        (shared_with({"A": [0, 1], "B": [0, 2]}, {"A": 3, "B": 3}, [], 2), "AB"),
    ):
        for request_id in order:
            given = f"{told(pool)}, append_slot({request_id!r})"
            slot, due, because = _after(pool, request_id)
            got = trial.call(pool, request_id, given=given)
            whole = tuple(got) if isinstance(got, tuple) else got
            trial.equal(whole, slot, given=given, because=f"Slot(block, offset, copied_from): {because}")
            expect_books(pool, due, given=given, because=because)
    for tables, lengths in (
        ({"A": [1, 0], "B": [1, 0]}, {"A": 3, "B": 3}),
        ({"A": [0]}, {"A": 2}),
    ):
        pool = shared_with(tables, lengths, [], 2)
        given = f"{told(pool)}, append_slot('A')"
        why = "one more block is needed and none is free"
        expect_refusal(trial, trial.answer, pool, "A", needed=1, given=given, because=why)
    return "Nobody writes into a block that somebody else holds."


_ROOM = "        if not self.free:\n            raise OutOfBlocks(needed=1, free=0, total=self.num_blocks)\n"
_LOWER = "        self.counts[copied_from] -= 1\n"
_PARTIAL = "self.lengths.get(request_id, 0) % self.block_size and self.counts[table[-1]] > 1"

exercise = Exercise(
    id="07.append_slot",
    title="Append with copy-on-write",
    setup="from kvlab import OutOfBlocks\nfrom kvlab.block_table import Slot",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "writes in place although others hold the block",
            edited(SOLUTION, _PARTIAL, "False"),
            says="block 1 is partial and has 3 holders, so B goes on in a copy of it, block 3; got (1, 3, "
            "None)",
        ),
        WrongAnswer(
            "lost decrement",
            edited(SOLUTION, _LOWER, ""),
            says="expected counts [0, 2, 0, 1, 0, 0, 0, 3] afterwards",
        ),
        WrongAnswer(
            "copies for the last holder, too",
            edited(SOLUTION, "self.counts[table[-1]] > 1", "self.counts[table[-1]] > 0"),
            says="has room and only A holds it, so it is written in place",
        ),
        WrongAnswer(
            "copies full blocks",
            edited(
                SOLUTION,
                _PARTIAL,
                "table and self.counts[table[-1]] > 1",
            ),
            says="a full block is never copied",
        ),
        WrongAnswer(
            "copy not reported",
            edited(SOLUTION, "Slot(block, offset, copied_from)", "Slot(block, offset)"),
            says="got (3, 3, None)",
        ),
        WrongAnswer(
            "names the new block as the source",
            edited(
                SOLUTION, "Slot(block, offset, copied_from)", "Slot(block, offset, copied_from and block)"
            ),
            says="expected (3, 3, 1)",
        ),
        WrongAnswer(
            "the new block is not counted",
            edited(SOLUTION, "    self.counts[block] = 1\n", ""),
            says="expected counts [0, 2, 0, 1, 0, 0, 0, 3] afterwards",
        ),
        WrongAnswer(
            "lowers the count before it looks for room",
            edited(SOLUTION, _ROOM, "").replace(_LOWER, _LOWER + _ROOM),
            says="OutOfBlocks is right, but the books changed: expected counts",
        ),
        WrongAnswer(
            "edits the shared list",
            edited(
                SOLUTION,
                "self.tables[request_id] = [*table[:-1], self.free.popleft()]",
                "self.tables[request_id] = [*table, self.free.popleft()]",
            ),
            says="got (1, 3, 1)",
        ),
    ],
)
