"""06.addresses: where the vectors of a tile begin in the cache."""

from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.n06_triton_kernel.interpreted import probe_answer
from kvlab.exercises.trial import Trial

STUB = '''\
def addresses(table, positions, inside, block_stride, slot_stride, BLOCK_SIZE):
    """Offsets of a tile's vectors in the cache, in elements: notebook 03 for a whole tile.

    Args:
        table: pointer to this sequence's row of block ids, int32.  positions: int32 [T].
        inside: bool [T]. Positions that are not inside may lie past the row: do not read an entry
            for them, take block 0.
        block_stride, slot_stride: elements from block to block, and from slot to slot.

    Returns:
        int64 [T]. Block 70,000 of 65,536 elements starts past 2 ** 32: widen before you multiply.

    Worked line: table [7, 1], BLOCK_SIZE 4, strides 64 and 16, position 6 -> 1 * 64 + 2 * 16 = 96.
    """
    ...  # about 2 lines; tl.load(pointers, mask=..., other=...), and x.to(tl.int64)
'''

SOLUTION = '''\
def addresses(table, positions, inside, block_stride, slot_stride, BLOCK_SIZE):
    """Offsets [T] of the vectors at these positions."""
    block = tl.load(table + positions // BLOCK_SIZE, mask=inside, other=0).to(tl.int64)  # [T]
    return block * block_stride + positions % BLOCK_SIZE * slot_stride  # [T]
'''

HINTS = (
    "`table + positions // BLOCK_SIZE` are T pointers, one for each position; tl.load reads them all. With "
    "`mask=inside, other=0` the lanes outside read nothing and get 0.",
    "A product has the type of its factors, and int32 ends at 2,147,483,647: `.to(tl.int64)` belongs to the "
    "block id, before the multiplication.",
)

# (table, first position, how many are inside, block size, block stride, slot stride)
_CASES = [
    ([7, 1], 0, 8, 4, 64, 16),
    ([5, 2, 9], 0, 8, 3, 48, 16),
    ([7, 1], 4, 3, 4, 64, 16),
    ([3, 8, 6, 1, 0, 2, 9, 4], 0, 8, 1, 16, 16),
    ([4], 0, 8, 16, 512, 32),
    ([70_000, 69_999], 0, 8, 16, 65_536, 128),
]


def check(trial: Trial) -> str:
    for case, got in zip(_CASES, probe_answer(trial, _CASES), strict=True):
        table, first, count, size, block_stride, slot_stride = case
        strides = f"strides {block_stride} and {slot_stride}"
        for lane in range(8):
            position = first + lane
            given = f"table {table}, BLOCK_SIZE {size}, {strides}, position {position}"
            if lane >= count:
                if not 0 <= got[lane] < block_stride:
                    raise Refused(
                        f"{given} (not inside): expected an address in block 0, because no entry may be read "
                        f"there; got {got[lane]}, from what lies behind the row."
                    )
                continue
            block, slot = table[position // size], position % size
            right = block * block_stride + slot * slot_stride
            if got[lane] != right:
                wrapped = (right + 2**31) % 2**32 - 2**31
                why = (
                    f"{block} * {block_stride} does not fit into 32 bits, and what does is {wrapped}"
                    if got[lane] == wrapped and wrapped != right
                    else f"it is in block {block}, slot {slot}: {block} * {block_stride} + {slot} * "
                    f"{slot_stride}"
                )
                raise Refused(f"{given}: expected {right}, because {why}; got {got[lane]}.")
    return "A tile's addresses at once, in 64 bits."


exercise = Exercise(
    id="06.addresses",
    title="Addresses of a tile",
    setup="from kvlab.exercises.n06_triton_kernel.language import tl",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "32 bits", edited(SOLUTION, ".to(tl.int64)", ""), says="70000 * 65536 does not fit into 32 bits"
        ),
        WrongAnswer(
            "widened too late",
            edited(SOLUTION, ".to(tl.int64)", "").replace(
                "return block * block_stride + positions % BLOCK_SIZE * slot_stride",
                "return (block * block_stride + positions % BLOCK_SIZE * slot_stride).to(tl.int64)",
            ),
            says="does not fit into 32 bits",
        ),
        WrongAnswer(
            "entries read outside",
            edited(SOLUTION, ", mask=inside, other=0", ""),
            says="position 7 (not inside): expected an address in block 0",
        ),
        WrongAnswer(
            "logical block for physical",
            edited(
                SOLUTION,
                "tl.load(table + positions // BLOCK_SIZE, mask=inside, other=0).to(tl.int64)",
                "(positions // BLOCK_SIZE).to(tl.int64)",
            ),
            says="position 0: expected 448, because it is in block 7, slot 0: 7 * 64 + 0 * 16; got 0",
        ),
        WrongAnswer(
            "slot without its stride",
            edited(SOLUTION, "positions % BLOCK_SIZE * slot_stride", "positions % BLOCK_SIZE"),
            says="position 1: expected 464",
        ),
        WrongAnswer(
            "position inside the sequence, not the block",
            edited(SOLUTION, "positions % BLOCK_SIZE * slot_stride", "positions * slot_stride"),
            says="position 4: expected 64, because it is in block 1, slot 0",
        ),
        WrongAnswer(
            "the block size as a number",
            edited(SOLUTION, "positions // BLOCK_SIZE", "positions // 4").replace(
                "positions % BLOCK_SIZE", "positions % 4"
            ),
            says="table [5, 2, 9], BLOCK_SIZE 3",
        ),
    ],
)
