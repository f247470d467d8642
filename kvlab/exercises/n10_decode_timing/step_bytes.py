"""10.step_bytes: the bytes of K and V that one decode step has to read in a layer."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.mistaken import gives
from kvlab.exercises.trial import Trial

STUB = '''\
def step_bytes(context_lens, num_q_heads, num_kv_heads, head_dim, element_bytes):
    """Bytes of K and V that one decode step reads in one layer, each byte once.

    Args:
        context_lens: list of tokens in each sequence of the batch; they differ.
        num_q_heads, num_kv_heads: Hq query heads share Hkv KV heads.
        head_dim: numbers in the vector of one head.  element_bytes: 4, 2 or 1.

    Returns:
        int: bytes.

    Worked line: lengths [3, 5], 4 query heads, 2 KV heads, head_dim 8, 4 bytes -> 1024.
    """
    ...  # about 2 lines
'''

SOLUTION = '''\
def step_bytes(context_lens, num_q_heads, num_kv_heads, head_dim, element_bytes):
    """Bytes of K and V that one decode step reads in one layer."""
    token_bytes = 2 * num_kv_heads * head_dim * element_bytes
    return sum(context_lens) * token_bytes
'''

HINTS = (
    "Start with one token: one K vector and one V vector for each head that is *stored*.",
    "The tokens of all sequences add up, `sum(context_lens)`. The heads of a group read the same K and V, "
    "which therefore has to come from memory once.",
)

_CASES = [
    ([3, 5], 4, 2, 8, 4),
    ([1], 1, 1, 1, 4),
    ([8192] * 64, 32, 8, 128, 2),
    ([100, 0, 7], 32, 1, 64, 1),
]


def check(trial: Trial) -> str:
    for lens, q_heads, kv_heads, dim, size in _CASES:
        tokens, token = sum(lens), 2 * kv_heads * dim * size
        shown = str(lens) if len(lens) < 8 else f"{len(lens)} times {lens[0]}"
        gives(
            trial,
            list(lens),
            q_heads,
            kv_heads,
            dim,
            size,
            expected=tokens * token,
            given=f"lengths {shown}, {q_heads} query and {kv_heads} KV heads, head_dim {dim}, {size} bytes",
            because=f"a token has 2 * {kv_heads} * {dim} * {size} = {token} bytes, and there are {tokens}",
            mistakes={
                "that is K alone, and V is read too": tokens * token // 2,
                "that counts query heads, and only KV heads are stored": 2 * tokens * q_heads * dim * size,
                "that takes every sequence for as long as the longest": len(lens) * max(lens) * token,
                "those are numbers, not bytes": tokens * token // size,
            },
        )
    return "These bytes have to come from memory in every step and layer, whatever the kernel."


exercise = Exercise(
    id="10.step_bytes",
    title="Bytes of a step",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer("K alone", edited(SOLUTION, "2 * num_kv", "num_kv"), says="that is K alone"),
        WrongAnswer(
            "query heads",
            edited(SOLUTION, "2 * num_kv_heads", "2 * num_q_heads"),
            says="only KV heads are stored",
        ),
        WrongAnswer(
            "padded batch",
            edited(SOLUTION, "sum(context_lens)", "len(context_lens) * max(context_lens)"),
            says="as long as the longest",
        ),
        WrongAnswer("numbers", edited(SOLUTION, " * element_bytes", ""), says="those are numbers, not bytes"),
        WrongAnswer(
            "bits",
            edited(SOLUTION, "element_bytes\n", "element_bytes * 8\n"),
            says="= 128 bytes, and there are 8",
        ),
    ],
)
