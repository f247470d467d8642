"""04.append_slot: the slot for one more token, and a block only when one is needed."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.n04_block_manager.books import blocks_with, books, expect_books, expect_refusal, told
from kvlab.exercises.trial import Trial

STUB = '''\
def append_slot(self, request_id):
    """The slot for the request's next token; a new request starts here.

    The token's number is the length BEFORE the call. Only afterwards the length grows by one.
    A block is taken from the left end of `self.free`, and only when the table has no room.

    Returns:
        (block, offset) of the new token.

    Raises:
        OutOfBlocks(needed=1, free=0, total=self.num_blocks): one is needed and none is free.
            Tables, lengths and free list are then as they were.

    Worked line: B = 4, table [7, 1], length 7 -> (1, 3); then (3, 0) if block 3 is next.
    """
    ...  # about 10 lines; self has free, tables, lengths, block_size
'''

SOLUTION = '''\
def append_slot(self, request_id):
    """The slot (block, offset) of the request's next token."""
    table = self.tables.get(request_id, [])
    length = self.lengths.get(request_id, 0)
    logical_block, offset = divmod(length, self.block_size)
    if logical_block == len(table):
        if not self.free:
            raise OutOfBlocks(needed=1, free=0, total=self.num_blocks)
        table = [*table, self.free.popleft()]
    self.tables[request_id] = table
    self.lengths[request_id] = length + 1
    return table[logical_block], offset
'''

HINTS = (
    "Look both up with a default for a new request: `self.tables.get(request_id, [])` and"
    " `self.lengths.get(request_id, 0)`. Then it is notebook 03 again: `divmod(length, self.block_size)`.",
    "When the logical block equals `len(table)`, the table has no entry for it yet: that is the moment for"
    " `self.free.popleft()`. Check that `self.free` is not empty before you change anything.",
)


def _after(blocks, request_id: str) -> tuple[tuple[int, int], dict, str]:
    """The slot and the books that are right after one more token, and why."""
    due = books(blocks)
    table, length = due["tables"].setdefault(request_id, []), due["lengths"].get(request_id, 0)
    logical_block, offset = divmod(length, blocks.block_size)
    why = (
        f"token {length} of {request_id} goes to logical block {length} // {blocks.block_size} = "
        f"{logical_block}, "
        f"slot {length} % {blocks.block_size} = {offset}, "
    )
    if logical_block == len(table):
        table.append(due["free"].pop(0))
        why += f"and the table has no such entry yet, so block {table[-1]} is taken"
    else:
        why += f"and the table has block {table[logical_block]} there already"
    due["lengths"][request_id] = length + 1
    return (table[logical_block], offset), due, why


def check(trial: Trial) -> str:
    for blocks, order in (
        (blocks_with({"A": [7, 1]}, {"A": 7}, [3, 0, 5, 2, 4, 6], 4), "AAABA"),
        (blocks_with({}, {}, [2, 0, 3, 1], 2), "AABAB"),
        (blocks_with({}, {}, [1, 0, 2], 1), "ABA"),
    ):
        for request_id in order:
            given = f"{told(blocks)}, append_slot({request_id!r})"
            slot, due, because = _after(blocks, request_id)
            got = trial.call(blocks, request_id, given=given)
            trial.equal(got, slot, given=given, because=because)
            expect_books(blocks, due, given=given, because=because)
    full = blocks_with({"A": [1, 0]}, {"A": 3}, [], 2)
    given = f"{told(full)}, append_slot('A')"
    trial.equal(
        trial.call(full, "A", given=given), (0, 1), given=given, because="block 0 still has a free slot"
    )
    for request_id in "AB":
        given = f"{told(full)}, append_slot({request_id!r})"
        why = "one more block is needed and none is free"
        expect_refusal(trial, trial.answer, full, request_id, needed=1, given=given, because=why)
    return "Blocks are taken one by one, exactly when a token has no room."


_RAISE = "            raise OutOfBlocks(needed=1, free=0, total=self.num_blocks)\n"
_COMMIT = "    self.lengths[request_id] = length + 1\n"

exercise = Exercise(
    id="04.append_slot",
    title="One more token",
    setup="from kvlab import OutOfBlocks",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "length committed before dividing",
            edited(SOLUTION, "divmod(length, self", "divmod(length + 1, self"),
            says="expected (1, 3), because token 7 of A goes to logical block 7 // 4 = 1, slot 7 % 4 = 3",
        ),
        WrongAnswer(
            "a block when length % B == 0 after",
            edited(SOLUTION, "if logical_block == len(table):", "if (length + 1) % self.block_size == 0:"),
            says="expected tables {'A': [7, 1]} afterwards",
        ),
        WrongAnswer(
            "a block for every token",
            edited(SOLUTION, "if logical_block == len(table):", "if True:"),
            says="the table has block 1 there already",
        ),
        WrongAnswer(
            "logical block for physical",
            edited(SOLUTION, "return table[logical_block], offset", "return logical_block, offset"),
            says="append_slot('A'): expected (3, 0), because token 8",
        ),
        WrongAnswer(
            "length forgotten",
            edited(SOLUTION, _COMMIT, ""),
            says="expected lengths {'A': 8} afterwards",
        ),
        WrongAnswer(
            "the other end of the free list",
            edited(SOLUTION, "self.free.popleft()", "self.free.pop()"),
            says="so block 3 is taken; got (6, 0)",
        ),
        WrongAnswer(
            "takes a block without looking",
            edited(SOLUTION, "        if not self.free:\n" + _RAISE, ""),
            says="raised IndexError",
        ),
        WrongAnswer(
            "an empty table stays behind a refusal",
            edited(SOLUTION, "self.tables.get(request_id, [])", "self.tables.setdefault(request_id, [])"),
            says="a call that raises must leave everything as it was",
        ),
        WrongAnswer(
            "the length grows before a refusal",
            edited(
                SOLUTION,
                "    logical_block, offset = divmod(length, self.block_size)\n",
                "    self.lengths[request_id] = length + 1\n"
                "    logical_block, offset = divmod(length, self.block_size)\n",
            ),
            says="expected lengths {'A': 4} afterwards, because a call that raises",
        ),
        WrongAnswer(
            "some other error",
            edited(SOLUTION, _RAISE, '            raise MemoryError("no free block")\n'),
            says="expected an OutOfBlocks, because one more block is needed and none is free",
        ),
        WrongAnswer(
            "waits for a block that never comes",
            edited(
                SOLUTION,
                "        if not self.free:\n" + _RAISE,
                "        while not self.free:\n            pass\n",
            ),
            says="a loop that never ends?",
        ),
    ],
)
