"""01.token_bytes: what one token leaves behind in the KV cache."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.mistaken import gives
from kvlab.exercises.trial import Trial

STUB = '''\
def token_bytes(num_layers, num_query_heads, num_kv_heads, head_dim, number_bytes):
    """Bytes of K and V that one token adds to the cache, over all layers.

    Args:
        num_layers: layers that keep K and V.
        num_query_heads: heads that ask. They compute with the cache.
        num_kv_heads: heads that are stored, at most as many.
        head_dim: numbers in one head's vector.
        number_bytes: bytes of one number: 2 for float16 and bfloat16, 1 for fp8.

    Returns:
        int: bytes.

    Worked line: 3 layers, 10 query heads, 5 KV heads, 16 numbers, 4 bytes -> 1920.
    """
    ...  # 1 line
'''

SOLUTION = '''\
def token_bytes(num_layers, num_query_heads, num_kv_heads, head_dim, number_bytes):
    """Bytes of K and V that one token adds to the cache, over all layers."""
    return 2 * num_layers * num_kv_heads * head_dim * number_bytes
'''

HINTS = (
    "Each layer keeps one K vector and one V vector for each head that is stored. Which of the two head "
    "counts "
    "is that?",
    "It is a product of five things: 2 for K and V, the layers, the KV heads, the numbers in a head, the "
    "bytes "
    "of a number. The query heads do not appear.",
)

# (what it is, layers, query heads, KV heads, head_dim, bytes)
_CASES = [
    ("a toy", 3, 10, 5, 16, 4),
    ("Qwen2.5-7B in float16", 28, 28, 4, 128, 2),
    ("Qwen2.5-7B with fp8 KV", 28, 28, 4, 128, 1),
    ("32 layers and 8 KV heads in bfloat16", 32, 32, 8, 128, 2),
    ("OPT-13B, where every query head has its own K and V", 40, 40, 40, 128, 2),
    ("SmolLM2-135M in float32", 30, 9, 3, 64, 4),
]


def check(trial: Trial) -> str:
    for what, layers, query_heads, kv_heads, dim, width in _CASES:
        expected = 2 * layers * kv_heads * dim * width
        gives(
            trial,
            layers,
            query_heads,
            kv_heads,
            dim,
            width,
            expected=expected,
            given=f"{what} ({layers} layers, {query_heads} query heads, {kv_heads} KV heads, {dim} numbers, "
            f"{width} byte{'s' * (width > 1)} each)",
            because=f"K and V in {layers} layers, {kv_heads} stored heads, {dim} numbers of {width} "
            f"byte{'s' * (width > 1)} are "
            f"2 * {layers} * {kv_heads} * {dim} * {width} = {expected:,}",
            mistakes={
                "that counts query heads, which compute and are not stored": 2
                * layers
                * query_heads
                * dim
                * width,
                "that is K or V alone": layers * kv_heads * dim * width,
                "that is one layer": 2 * kv_heads * dim * width,
                "that counts numbers, not bytes": 2 * layers * kv_heads * dim,
                "that is bits": 8 * expected,
            },
        )
    return "Qwen2.5-7B: 57,344 bytes a token, 32 layers with 8 KV heads: 128 KiB."


exercise = Exercise(
    id="01.token_bytes",
    title="Bytes of one token",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "query heads for KV heads",
            edited(SOLUTION, "num_layers * num_kv_heads", "num_layers * num_query_heads"),
            says="got 3840: that counts query heads",
        ),
        WrongAnswer("forgets V", edited(SOLUTION, "return 2 * ", "return "), says="that is K or V alone"),
        WrongAnswer("one layer", edited(SOLUTION, "num_layers * num_kv", "num_kv"), says="that is one layer"),
        WrongAnswer(
            "numbers, not bytes",
            edited(SOLUTION, " * number_bytes", ""),
            says="that counts numbers, not bytes",
        ),
        WrongAnswer(
            "bits, not bytes", edited(SOLUTION, "* number_bytes", "* number_bytes * 8"), says="that is bits"
        ),
        WrongAnswer(
            "always two bytes",
            edited(SOLUTION, "* number_bytes", "* (4 if number_bytes == 4 else 2)"),
            says="with fp8 KV (28 layers, 28 query heads, 4 KV heads, 128 numbers, 1 byte each): expected "
            "28672",
        ),
        WrongAnswer("a print", edited(SOLUTION, "return 2", "_ = 2"), says="is the `return` missing?"),
    ],
)
