"""04.append: several tokens at once, all or nothing."""

from kvlab.exercises.blocks import Blocks, manager_from
from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.n04_block_manager.books import blocks_with, books, expect_books, expect_refusal, told
from kvlab.exercises.registry import define, get
from kvlab.exercises.trial import Trial

STUB = '''\
def append(self, request_id, n):
    """Slots for the request's next n tokens: all of them, or an error and no change.

    Returns:
        list of n slots (block, offset), in the order of the tokens.

    Raises:
        ValueError: n is less than 1.
        OutOfBlocks(needed, free, total): more blocks are needed than free. `needed` counts only new
            blocks: room in the last block is used first. Nothing is changed.

    Worked line: B = 4, table [7, 1], length 7, n 2 -> [(1, 3), (3, 0)] if block 3 is next.
    """
    ...  # about 9 lines; self has append_slot, free, lengths, block_size, num_blocks
'''

SOLUTION = '''\
def append(self, request_id, n):
    """Slots for n more tokens, all or nothing."""
    if n < 1:
        raise ValueError(f"append at least 1 token, not {n}")
    length = self.lengths.get(request_id, 0)
    have = -(-length // self.block_size)
    needed = -(-(length + n) // self.block_size) - have
    if needed > len(self.free):
        raise OutOfBlocks(needed=needed, free=len(self.free), total=self.num_blocks)
    return [self.append_slot(request_id) for _ in range(n)]
'''

HINTS = (
    "Count before you take: L tokens fill ceil(L / B) blocks, which is `-(-L // B)` in whole numbers. The "
    "blocks that"
    " are needed are those after the append minus those before.",
    "If `needed > len(self.free)`, raise at once. Otherwise n calls of `self.append_slot(request_id)` cannot "
    "fail.",
)


# tables, lengths, free list, block size, then appends that fit
_FITS = [
    ({"A": [7, 1]}, {"A": 7}, [3, 0, 5, 2, 4, 6], 4, [("A", 2), ("B", 1), ("A", 3), ("B", 8)]),
    ({}, {}, [2, 0, 3, 1], 2, [("A", 3), ("B", 2), ("A", 1), ("A", 2)]),
    ({"A": [1], "B": [0]}, {"A": 1, "B": 2}, [], 2, [("A", 1)]),
    ({"A": [2, 1]}, {"A": 5}, [0], 4, [("A", 7)]),
]
# tables, lengths, free list of blocks of 2, an append that does not fit, how many blocks it needs
_DOES_NOT_FIT = [
    ({"A": [0, 1, 2]}, {"A": 5}, [3], "B", 3, 2),
    ({"A": [0, 1, 2]}, {"A": 5}, [3], "A", 5, 2),
    ({"A": [0, 1]}, {"A": 4}, [], "A", 1, 1),
    ({}, {}, [1, 0], "A", 9, 5),
]


def check(trial: Trial) -> str:
    slot = get("04.append_slot")
    make = manager_from(append_slot=define(slot, slot.solution), append=trial.answer)
    for tables, lengths, free, block_size, script in _FITS:
        blocks = blocks_with(tables, lengths, free, block_size, make)
        for request_id, n in script:
            _grows(trial, blocks, request_id, n)
    for tables, lengths, free, request_id, n, needed in _DOES_NOT_FIT:
        blocks = blocks_with(tables, lengths, free, 2, make)
        given = f"{told(blocks)}, append({request_id!r}, {n})"
        total, have = lengths.get(request_id, 0) + n, len(tables.get(request_id, []))
        why = (
            f"{total} tokens of {request_id} need {have + needed} blocks, it has {have}, and there are "
            f"{len(free)} free for {needed} more"
        )
        expect_refusal(trial, trial.answer, blocks, request_id, n, needed=needed, given=given, because=why)
    for n in (0, -1):
        blocks = blocks_with({"A": [1]}, {"A": 1}, [0], 2, make)
        given, before = f"{told(blocks)}, append('A', {n})", books(blocks)
        trial.raises(ValueError, blocks, "A", n, given=given, because="an append has at least one token")
        why = "a call that raises must leave everything as it was"
        expect_books(blocks, before, given=given, because=why)
    return "All or nothing, and never more blocks than the tokens need."


def _grows(trial: Trial, blocks: Blocks, request_id: str, n: int) -> None:
    given, due, size = f"{told(blocks)}, append({request_id!r}, {n})", books(blocks), blocks.block_size
    table, length = due["tables"].setdefault(request_id, []), due["lengths"].get(request_id, 0)
    slots = []
    for position in range(length, length + n):
        if position // size == len(table):
            table.append(due["free"].pop(0))
        slots.append((table[position // size], position % size))
    due["lengths"][request_id] = length + n
    tokens = f"token {length} goes" if n == 1 else f"tokens {length} to {length + n - 1} go"
    why = f"{tokens} where the table {table} says, and {length + n} tokens need {len(table)} blocks of {size}"
    trial.gives(blocks, request_id, n, expected=slots, given=given, because=why)
    expect_books(blocks, due, given=given, because=why)


_HAVE = "    have = -(-length // self.block_size)\n"
_TOO_FEW = """\
    if needed > len(self.free):
        raise OutOfBlocks(needed=needed, free=len(self.free), total=self.num_blocks)
"""
_LOOP = "    return [self.append_slot(request_id) for _ in range(n)]\n"
_ROLL_BACK = """\
    slots, before = [], list(self.tables.get(request_id, []))
    try:
        for _ in range(n):
            slots.append(self.append_slot(request_id))
    except OutOfBlocks:
        new = self.tables.get(request_id, [])[len(before):]
        self.free.extend(reversed(new))
        if before:
            self.tables[request_id], self.lengths[request_id] = before, length
        else:
            self.tables.pop(request_id, None), self.lengths.pop(request_id, None)
        raise OutOfBlocks(needed=needed, free=len(self.free), total=self.num_blocks) from None
    return slots
"""

exercise = Exercise(
    id="04.append",
    title="Several tokens, all or nothing",
    setup="from kvlab import OutOfBlocks",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    needs=("04.append_slot",),
    wrong=[
        WrongAnswer(
            "takes what there is, then raises",
            edited(SOLUTION, _TOO_FEW, "    needed = max(needed, 0)\n"),
            says="OutOfBlocks is right, but the books changed: expected tables {'A': [0, 1, 2]}",
        ),
        WrongAnswer(
            "needed figured right, blocks taken all the same",
            edited(
                SOLUTION,
                _TOO_FEW,
                "    if needed > len(self.free):\n"
                "        error = OutOfBlocks(needed=needed, free=len(self.free), total=self.num_blocks)\n"
                "        while self.free:\n            self.append_slot(request_id)\n        raise error\n",
            ),
            says="a call that raises must leave everything as it was",
        ),
        WrongAnswer(
            "given back in another order",
            edited(SOLUTION, _TOO_FEW, "").replace(_LOOP, _ROLL_BACK),
            says="expected free [1, 0] afterwards",
        ),
        WrongAnswer(
            "room in the last block not counted",
            edited(SOLUTION, _HAVE, "").replace(
                "-(-(length + n) // self.block_size) - have", "-(-n // self.block_size)"
            ),
            says="append('A', 1)",
        ),
        WrongAnswer(
            "one block a token",
            edited(SOLUTION, "-(-(length + n) // self.block_size) - have", "n"),
            says="append('B', 8)",
        ),
        WrongAnswer(
            "rounded down",
            edited(
                SOLUTION,
                "-(-(length + n) // self.block_size) - have",
                "(length + n) // self.block_size - have",
            ),
            says="append('B', 3): OutOfBlocks is right, but the books changed",
        ),
        WrongAnswer(
            "one slot for all",
            edited(SOLUTION, _LOOP, "    return [self.append_slot(request_id)] * n\n"),
            says="tokens 7 to 8 go where the table [7, 1, 3] says",
        ),
        WrongAnswer(
            "zero tokens accepted",
            edited(
                SOLUTION, '    if n < 1:\n        raise ValueError(f"append at least 1 token, not {n}")\n', ""
            ),
            says="expected a ValueError, because an append has at least one token",
        ),
        WrongAnswer(
            "returns only the last slot",
            edited(
                SOLUTION,
                _LOOP,
                "    for _ in range(n):\n        slot = self.append_slot(request_id)\n    return slot\n",
            ),
            says="append('A', 2): expected [(1, 3), (3, 0)]",
        ),
    ],
)
