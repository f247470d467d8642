"""05.paged_loop: one head walks a block table, one block at a time."""

from kvlab.exercises.exercise import Exercise, Refused, WrongAnswer, edited
from kvlab.exercises.n05_paged_attention.numbers import exact, expect_close, random
from kvlab.exercises.trial import Trial

STUB = '''\
def paged_loop(q, k_cache, v_cache, block_table, length):
    """Attention of one query head over a sequence that lies in blocks, one block at a time.

    Args:
        q: [D].  k_cache, v_cache: [num_blocks, B, D], one KV head of the whole pool.
        block_table: physical block ids in logical order, padded with -1: entries past the length
            are never followed.  length: how many tokens there are, at least 1.

    Returns:
        [D], what `one_head` gives for the same tokens in one piece. Slots past the length belong
        to nobody and do not count.

    Worked line: B = 4, table [7, 1, -1], length 6 -> 4 slots of block 7, then 2 slots of block 1.
    """
    ...  # about 10 lines; you have merge(a, b), which starts from (-inf, 0, zeros)
'''

SOLUTION = '''\
def paged_loop(q, k_cache, v_cache, block_table, length):
    """Attention of one query head, walking the block table."""
    block_size = k_cache.shape[1]
    running = torch.tensor(-math.inf), torch.tensor(0.0), torch.zeros_like(q)
    for logical in range(math.ceil(length / block_size)):
        block = block_table[logical]
        filled = min(block_size, length - logical * block_size)
        scores = k_cache[block, :filled] @ q / math.sqrt(q.shape[0])  # [filled]
        weights = torch.exp(scores - scores.max())  # [filled]
        piece = scores.max(), weights.sum(), weights @ v_cache[block, :filled]
        running = merge(running, piece)
    return running[2] / running[1]  # [D]
'''

HINTS = (
    "The outer loop goes over logical blocks 0, 1, ... until the length is covered. `block_table[logical]` "
    "says where to read, and the last block holds only `length - logical * block_size` tokens.",
    "Inside is `one_head` again, without its last division: keep (largest score, sum of weights, weights "
    "@ values) of this block and `merge` it into what you have. Divide once, at the end.",
)


# block size, table, length, why
_CASES = [
    (4, [7, 1, -1], 6, "logical block 0 is in block 7, and block 1 holds tokens 4 and 5 only"),
    (4, [5, 2, 0], 12, "all three blocks are full, and their order in memory does not matter"),
    (4, [5, 2, 0], 9, "block 0 holds token 8 only"),
    (2, [3, 0, 6, 1, -1, -1], 7, "block 1 holds token 6 only, and -1 is no block"),
    (1, [4, 7, 2], 3, "blocks of one slot are blocks, too"),
    (4, [6, 3], 8, "token 7 fills block 3, and no third block is needed"),
]


def check(trial: Trial) -> str:
    import torch

    for number, (block_size, table, length, why) in enumerate(_CASES):
        k_cache, v_cache = random(2, 8, block_size, 4, seed=number, factor=2.0)  # [N, B, D] each
        q = random(4, seed=50 + number)
        positions = torch.arange(length)
        blocks = torch.tensor(table)[positions // block_size]  # [T]
        k, v = k_cache[blocks, positions % block_size], v_cache[blocks, positions % block_size]  # [T, D]
        given = f"B = {block_size}, table {table}, length {length}"
        got = trial.call(q, k_cache, v_cache, list(table), length, given=given)
        expect_close(got, exact(q, k, v), given=given, because=why)
    _never_gathers(trial)
    return "Scattered or not, the result is that of one piece."


def _never_gathers(trial: Trial) -> None:
    """One block at a time: no call may make a tensor of the whole sequence's keys."""
    from kvlab.exercises.n05_paged_attention.largest import largest_made

    block_size, length, head_dim = 4, 64, 16
    k_cache, v_cache = random(2, 16, block_size, head_dim, seed=9)  # [N, B, D] each
    q, table = random(head_dim, seed=8), list(range(15, -1, -1))
    given = f"B = {block_size}, 16 blocks, length {length}, D = {head_dim}"
    made = trial.call(
        given=given,
        function=lambda: largest_made(trial.answer, q, k_cache, v_cache, table, length),
    )
    if made >= length * head_dim:
        raise Refused(
            f"{given}: right, but a tensor of {made} numbers was made, as many as all keys together; walk "
            "block by block and keep only (m, l, w), because a real sequence has gigabytes of keys."
        )


exercise = Exercise(
    id="05.paged_loop",
    title="Walk the block table",
    setup="import math\n\nimport torch",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    needs=("05.merge",),
    wrong=[
        WrongAnswer(
            "logical block for physical",
            edited(SOLUTION, "block = block_table[logical]", "block = logical"),
            says="because logical block 0 is in block 7",
        ),
        WrongAnswer(
            "the whole last block",
            edited(SOLUTION, "min(block_size, length - logical * block_size)", "block_size"),
            says="block 1 holds tokens 4 and 5 only; got",
        ),
        WrongAnswer(
            "full blocks only",
            edited(SOLUTION, "math.ceil(length / block_size)", "length // block_size"),
            says="table [7, 1, -1], length 6",
        ),
        WrongAnswer(
            "one block too many",
            edited(SOLUTION, "math.ceil(length / block_size)", "length // block_size + 1").replace(
                "filled = min(block_size, length - logical * block_size)",
                "filled = min(block_size, length - logical * block_size) or block_size",
            ),
            says="length 12: your `paged_loop` raised IndexError",
        ),
        WrongAnswer(
            "blocks in the order of memory",
            edited(
                SOLUTION,
                "block = block_table[logical]",
                "block = sorted(b for b in block_table if b >= 0)[logical]",
            ),
            says="logical block 0 is in block 7",
        ),
        WrongAnswer(
            "follows the padding",
            edited(SOLUTION, "range(math.ceil(length / block_size))", "range(len(block_table))").replace(
                "filled = min(block_size, length - logical * block_size)",
                "filled = max(1, min(block_size, length - logical * block_size))",
            ),
            says="table [7, 1, -1], length 6",
        ),
        WrongAnswer(
            "a softmax of its own for each block",
            edited(
                SOLUTION,
                "piece = scores.max(), weights.sum(),",
                "weights = weights / weights.sum()\n        piece = torch.tensor(0.0), torch.tensor(1.0),",
            ),
            says="B = 4, table [7, 1, -1], length 6: expected",
        ),
        WrongAnswer(
            "gathers first",
            "def paged_loop(q, k_cache, v_cache, block_table, length):\n"
            "    rows = [(block_table[t // k_cache.shape[1]], t % k_cache.shape[1]) for t in range(length)]\n"
            "    k = torch.stack([k_cache[row] for row in rows])\n"
            "    v = torch.stack([v_cache[row] for row in rows])\n"
            "    return torch.softmax(k @ q / math.sqrt(q.shape[0]), 0) @ v\n",
            says="right, but a tensor of 1024 numbers was made",
        ),
    ],
)
