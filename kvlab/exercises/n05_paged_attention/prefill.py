"""05.prefill: many queries of one sequence at once, each seeing only what came before it."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.n05_paged_attention.numbers import exact, expect_close, random
from kvlab.exercises.trial import Trial

STUB = '''\
def prefill(q, k_cache, v_cache, block_table, start):
    """Attention of the tokens start, start + 1, ... of one sequence, for one head.

    Their K and V are in the cache already, behind those of the `start` tokens before them.

    Args:
        q: [T, D], one query a token.  k_cache, v_cache: [num_blocks, B, D].
        block_table: tensor of block ids [max_blocks].  start: tokens before the first query; 0 for
            a prompt in one go, more for its second chunk.

    Returns:
        [T, D]; token start + i sees tokens 0 to start + i, itself included, and none after it.

    Worked line: start 3, T = 2 -> the first query sees 4 tokens, the second 5.
    """
    ...  # about 8 lines of torch; gathering is fine here, and so is torch.softmax
'''

SOLUTION = '''\
def prefill(q, k_cache, v_cache, block_table, start):
    """Causal attention of the queries [T, D] of tokens start .. start + T - 1."""
    block_size = k_cache.shape[1]
    positions = torch.arange(start + len(q))  # [L]
    blocks, offsets = block_table[positions // block_size], positions % block_size  # [L], [L]
    k, v = k_cache[blocks, offsets], v_cache[blocks, offsets]  # [L, D], [L, D]
    scores = q @ k.T / math.sqrt(q.shape[1])  # [T, L]
    own = start + torch.arange(len(q))  # [T]
    scores = scores.masked_fill(positions[None, :] > own[:, None], -math.inf)  # [T, L]
    return torch.softmax(scores, dim=-1) @ v  # [T, D]
'''

HINTS = (
    "Gather K and V of the positions 0 to start + T - 1 through the table, as in notebook 03. Then "
    "`q @ k.T` has one row a query and one column a token.",
    "Row i belongs to token start + i. Columns of later tokens get -inf before the softmax: compare "
    "`torch.arange(L)[None, :]` with `start + torch.arange(T)[:, None]`.",
)


# block size, table, start, number of queries, why
_CASES = [
    (4, [7, 1], 0, 5, "query 0 sees token 0 only, query 4 sees all five"),
    (4, [7, 1], 3, 2, "the first query is token 3 and sees 4 tokens, the second sees 5"),
    (4, [5, 2, 0], 8, 4, "the third block's first token, 8, sees the two blocks before it and itself"),
    (2, [3, 0, 6], 5, 1, "one query is a decode step: token 5 sees all 6 tokens"),
    (16, [2], 0, 1, "the first token of all sees itself"),
]


def check(trial: Trial) -> str:
    import torch

    for number, (block_size, table, start, count, why) in enumerate(_CASES):
        k_cache, v_cache = random(2, 8, block_size, 4, seed=number, factor=2.0)  # [N, B, D] each
        q, positions = random(count, 4, seed=40 + number), torch.arange(start + count)
        blocks, offsets = torch.tensor(table)[positions // block_size], positions % block_size  # [L] each
        k, v = k_cache[blocks, offsets], v_cache[blocks, offsets]  # [L, D] each
        right = [exact(q[i], k[: start + i + 1], v[: start + i + 1]) for i in range(count)]
        given = f"B = {block_size}, table {table}, start {start}, {count} quer{'y' if count == 1 else 'ies'}"
        got = trial.call(q, k_cache, v_cache, torch.tensor(table), start, given=given)
        expect_close(got, torch.stack(right), given=given, because=why)
    return "Decode is prefill with a single query: the same table, the same sum."


exercise = Exercise(
    id="05.prefill",
    title="Many queries at once",
    setup="import math\n\nimport torch",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "sees the future",
            edited(
                SOLUTION,
                "    scores = scores.masked_fill(positions[None, :] > own[:, None], -math.inf)  # [T, L]\n",
                "",
            ),
            says="query 0 sees token 0 only",
        ),
        WrongAnswer(
            "does not see itself",
            edited(SOLUTION, "positions[None, :] > own", "positions[None, :] >= own"),
            says="query 0 sees token 0 only, query 4 sees all five; got [nan",
        ),
        WrongAnswer(
            "the start left out of the mask",
            edited(SOLUTION, "own = start + torch", "own = torch"),
            says="the first query is token 3 and sees 4 tokens",
        ),
        WrongAnswer(
            "only the new tokens",
            edited(SOLUTION, "torch.arange(start + len(q))  # [L]", "start + torch.arange(len(q))  # [L]"),
            says="start 3, 2 queries: expected",
        ),
        WrongAnswer(
            "masked after the softmax",
            edited(
                SOLUTION,
                "    scores = scores.masked_fill(positions[None, :] > own[:, None], -math.inf)  # [T, L]\n",
                "",
            ).replace(
                "torch.softmax(scores, dim=-1) @ v",
                "torch.softmax(scores, dim=-1).masked_fill(positions[None, :] > own[:, None], 0.0) @ v",
            ),
            says="B = 4, table [7, 1], start 0, 5 queries: expected",
        ),
        WrongAnswer(
            "the table not used",
            edited(SOLUTION, "block_table[positions // block_size]", "positions // block_size"),
            says="table [7, 1], start 0",
        ),
        WrongAnswer(
            "softmax over the queries",
            edited(SOLUTION, "dim=-1", "dim=0"),
            says="start 0, 5 queries: expected",
        ),
    ],
)
