"""13.kv_bytes: what the blocks of several requests cost in bytes."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.trial import Trial

STUB = '''def kv_bytes(lengths, block_size, num_layers, num_kv_heads, head_dim, bytes_per_number):
    """Bytes of K and V in the blocks that these requests hold, empty slots included.

    lengths: tokens of each request, such as [44, 36]. Each request takes whole blocks of its own.
    kv_bytes([1], 16, 30, 3, 64, 4) -> 737280: one token takes one block of 16.
    """
    ...  # about 3 lines
'''

SOLUTION = """def kv_bytes(lengths, block_size, num_layers, num_kv_heads, head_dim, bytes_per_number):
    blocks = sum((length + block_size - 1) // block_size for length in lengths)
    bytes_per_token = 2 * num_layers * num_kv_heads * head_dim * bytes_per_number
    return blocks * block_size * bytes_per_token
"""

HINTS = (
    "A token leaves one vector of `head_dim` numbers behind in each layer and each KV head, once for K and "
    "once for V.",
    "Count the blocks of each request first (notebook 00), add them up, and only then go to bytes: a block "
    "that is partly empty costs as much as a full one.",
)

WRONG = (
    WrongAnswer("forgets V", edited(SOLUTION, "2 * num_layers", "num_layers"), "got 368640"),
    WrongAnswer(
        "counts tokens, not blocks",
        edited(SOLUTION, "return blocks * block_size", "return sum(lengths)"),
        "got 46080",
    ),
    WrongAnswer(
        "only full blocks",
        edited(SOLUTION, "(length + block_size - 1)", "length"),
        "got 0",
    ),
    WrongAnswer(
        "lets requests share a last block",
        edited(
            SOLUTION,
            "sum((length + block_size - 1) // block_size for length in lengths)",
            "(sum(lengths) + block_size - 1) // block_size",
        ),
        "3 + 3 blocks of 16 tokens",
    ),
    WrongAnswer("one layer", edited(SOLUTION, "num_layers * num_kv_heads", "num_kv_heads"), "got 24576"),
)


def _check(trial: Trial) -> str:
    cases = [
        ([1], 16, 30, 3, 64, 4),
        ([44, 36], 16, 30, 3, 64, 4),
        ([44, 36], 1, 30, 3, 64, 2),
        ([16, 0, 17], 16, 28, 4, 128, 2),
    ]
    for case in cases:
        lengths, size, layers, heads, dim, width = case
        blocks = [-(-length // size) for length in lengths]
        expected = sum(blocks) * size * 2 * layers * heads * dim * width
        counted = " + ".join(map(str, blocks)) + (" block" if blocks == [1] else " blocks")
        because = (
            f"{counted} of {size} tokens, each token K and V in {layers} layers x {heads} KV heads x {dim} "
            f"numbers x {width} bytes"
        )
        given = f"lengths {lengths}, blocks of {size}"
        trial.gives(*case, expected=expected, given=given, because=because)
    return "For [44, 36] in blocks of 16 it is 4,423,680 bytes: 46,080 a token, 96 slots."


exercise = Exercise(
    id="13.kv_bytes",
    title="Bytes of KV that two requests hold",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    wrong=WRONG,
    check=_check,
)
