"""01.budget: how many bytes a number of requests needs."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.mistaken import gives
from kvlab.exercises.trial import Trial

STUB = '''\
def budget(num_requests, length, block_size, bytes_per_token):
    """Bytes of KV that `num_requests` requests of `length` tokens need at the same time.

    Args:
        num_requests: how many run at once.
        length: tokens of each, at least 1.
        block_size: B. Each request holds whole blocks of its own.
        bytes_per_token: over all layers.

    Returns:
        int: bytes, the empty slots of last blocks included.

    Worked line: 2 requests of 5 tokens, B = 4, 10 bytes a token -> 160.
    """
    ...  # 2 lines
'''

SOLUTION = '''\
def budget(num_requests, length, block_size, bytes_per_token):
    """Bytes of KV that these requests need at the same time."""
    blocks_of_one = (length + block_size - 1) // block_size
    return num_requests * blocks_of_one * block_size * bytes_per_token
'''

HINTS = (
    "Turn `requests` around. Blocks of one request first, rounded up; then all requests; then bytes.",
    "A block takes `block_size * bytes_per_token` bytes, full or not.",
)

_CASES = [(2, 5, 4, 10), (16, 8_192, 16, 57_344), (16, 8_192, 16, 28_672), (1, 8_192, 16, 131_072)]
_CASES += [(100, 100, 16, 57_344), (1, 1, 16, 57_344)]


def check(trial: Trial) -> str:
    for count, length, size, token in _CASES:
        one = -(-length // size)
        gives(
            trial,
            count,
            length,
            size,
            token,
            expected=count * one * size * token,
            given=f"{count} requests of {length} tokens, B = {size}, {token} bytes a token",
            because=f"each holds {one} block{'s' * (one != 1)}, {count * one} together, and a block takes "
            f"{size * token:,} bytes",
            mistakes={
                "that leaves out the empty slots": count * length * token,
                "that packs all requests into one row of blocks": -(-count * length // size) * size * token,
                "that is one request": one * size * token,
                "that is bytes of a token times blocks": count * one * token,
                "a request that fills its blocks needs no further one": count
                * (length // size + 1)
                * size
                * token,
            },
        )
    return "16 requests of 8,192 tokens need 7.0 GiB for Qwen2.5-7B in float16, and 3.5 GiB with fp8 KV."


exercise = Exercise(
    id="01.budget",
    title="A budget for sixteen",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "tokens, not blocks",
            edited(SOLUTION, "blocks_of_one * block_size * bytes", "length * bytes"),
            says="got 100: that leaves out the empty slots",
        ),
        WrongAnswer(
            "one row of blocks for all",
            edited(
                SOLUTION,
                "return num_requests * blocks_of_one",
                "return -(-num_requests * length // block_size)",
            ),
            says="got 120: that packs all requests into one row",
        ),
        WrongAnswer(
            "one request",
            edited(SOLUTION, "num_requests * blocks", "blocks"),
            says="got 80: that is one request",
        ),
        WrongAnswer(
            "bytes of a token for bytes of a block",
            edited(SOLUTION, "blocks_of_one * block_size", "blocks_of_one"),
            says="got 40: that is bytes of a token times blocks",
        ),
        WrongAnswer(
            "always one block more",
            edited(SOLUTION, "(length + block_size - 1) // block_size", "length // block_size + 1"),
            says="needs no further one",
        ),
    ],
)
