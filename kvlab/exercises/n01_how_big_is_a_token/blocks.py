"""01.blocks: whole blocks in a budget, and what is left over."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.mistaken import gives
from kvlab.exercises.trial import Trial

STUB = '''\
def blocks(available_bytes, block_size, bytes_per_token):
    """How many blocks a budget holds, and how many bytes are too few for one more.

    Args:
        available_bytes: bytes that the engine may use for KV.
        block_size: B, tokens a block.
        bytes_per_token: over all layers, as `token_bytes` gives it.

    Returns:
        (blocks, left_over): whole blocks, and bytes.

    Worked line: 1000 bytes, B = 4, 60 bytes a token -> (4, 40).
    """
    ...  # 1 or 2 lines
'''

SOLUTION = '''\
def blocks(available_bytes, block_size, bytes_per_token):
    """Whole blocks in a budget, and the bytes left over."""
    return divmod(available_bytes, block_size * bytes_per_token)
'''

HINTS = (
    "How many bytes does a block of B tokens take, over all layers? Nobody can use half a block.",
    "`available_bytes // block_bytes` is the count and `available_bytes % block_bytes` the rest; `divmod` "
    "gives "
    "both.",
)

_CASES = [
    ("1,000 bytes", 1000, 4, 60),
    ("20 GiB for 32 layers, 8 KV heads, bfloat16", 20 * 2**30, 16, 131_072),
    ("6,103,285,709 bytes for Qwen2.5-7B in float16", 6_103_285_709, 16, 57_344),
    ("the same bytes with fp8 KV", 6_103_285_709, 16, 28_672),
    ("less than one block", 239, 4, 60),
    ("exactly one block", 240, 4, 60),
    ("12 GiB for OPT-13B, B = 1", 12 * 2**30, 1, 819_200),
]


def check(trial: Trial) -> str:
    for what, available, size, token in _CASES:
        block = size * token
        gives(
            trial,
            available,
            size,
            token,
            expected=divmod(available, block),
            given=f"{what} ({available} bytes, B = {size}, {token} bytes a token)",
            because=f"a block takes {size} * {token} = {block:,} bytes, {available // block:,} of them fit, "
            f"and "
            f"{available % block:,} bytes stay",
            mistakes={
                "that counts a block that is not whole": (-(-available // block), available % block),
                "that counts tokens, not blocks": divmod(available, token),
                "the second number should be bytes, not tokens": (
                    available // block,
                    available // token % size,
                ),
            },
        )
    return "20 GiB hold 10,240 blocks of 2 MiB; Qwen2.5-7B gets 6,652 and leaves 49,101 bytes unused."


exercise = Exercise(
    id="01.blocks",
    title="Blocks in a budget",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "rounds to the nearest",
            edited(
                SOLUTION,
                "divmod(available_bytes, block_size * bytes_per_token)",
                "round(available_bytes / (block_size * bytes_per_token)), "
                "available_bytes % (block_size * bytes_per_token)",
            ),
            says="got (1, 239): that counts a block that is not whole",
        ),
        WrongAnswer(
            "rounds up",
            edited(
                SOLUTION,
                "divmod(available_bytes, block_size * bytes_per_token)",
                "-(-available_bytes // (block_size * bytes_per_token)), "
                "available_bytes % (block_size * bytes_per_token)",
            ),
            says="got (5, 40): that counts a block that is not whole",
        ),
        WrongAnswer(
            "tokens, not blocks",
            edited(SOLUTION, "block_size * bytes_per_token", "bytes_per_token"),
            says="got (16, 40): that counts tokens, not blocks",
        ),
        WrongAnswer(
            "only the count",
            edited(
                SOLUTION,
                "divmod(available_bytes, block_size * bytes_per_token)",
                "available_bytes // (block_size * bytes_per_token)",
            ),
            says="expected (4, 40), because a block takes 4 * 60 = 240 bytes",
        ),
        WrongAnswer(
            "left over in tokens",
            edited(
                SOLUTION,
                "divmod(available_bytes, block_size * bytes_per_token)",
                "available_bytes // (block_size * bytes_per_token), "
                "available_bytes // bytes_per_token % block_size",
            ),
            says="should be bytes, not tokens",
        ),
    ],
)
