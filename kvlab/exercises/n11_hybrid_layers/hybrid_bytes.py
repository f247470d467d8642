"""11.hybrid_bytes: bytes of a token when only some layers keep it."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.mistaken import gives
from kvlab.exercises.trial import Trial

STUB = '''\
def hybrid_bytes(layer_types, num_kv_heads, head_dim, number_bytes):
    """Bytes of K and V that one token adds, over the layers that keep K and V.

    Args:
        layer_types: one word a layer, as in a config.json: "full_attention", "sliding_attention" or
            "linear_attention". A linear layer keeps a state of fixed size instead of tokens.
        num_kv_heads, head_dim, number_bytes: of the attention layers.

    Returns:
        int: bytes.

    Worked line: ["linear_attention", "full_attention"], 3 heads, 8 numbers, 2 bytes -> 96.
    """
    ...  # about 2 lines
'''

SOLUTION = '''\
def hybrid_bytes(layer_types, num_kv_heads, head_dim, number_bytes):
    """Bytes that one token adds, over the layers that keep K and V."""
    keeping = sum(kind != "linear_attention" for kind in layer_types)
    return 2 * keeping * num_kv_heads * head_dim * number_bytes
'''

HINTS = (
    "It is `token_bytes` of notebook 01 with another number of layers. Which of the three words keep a "
    "token?",
    "Sliding layers write each token, too, and drop it later. So count the layers that are not "
    '"linear_attention".',
)

_LINEAR, _FULL, _SLIDING = "linear_attention", "full_attention", "sliding_attention"
_CASES = [
    ("one of two layers", [_LINEAR, _FULL], 3, 8, 2),
    ("Qwen3.5-4B", [_LINEAR, _LINEAR, _LINEAR, _FULL] * 8, 4, 256, 2),
    ("sliding and full in turn", [_SLIDING, _FULL] * 12, 8, 64, 2),
    ("all full", [_FULL] * 5, 2, 16, 1),
    ("no attention", [_LINEAR] * 3, 2, 16, 2),
]


def check(trial: Trial) -> str:
    for what, kinds, heads, dim, width in _CASES:
        one = 2 * heads * dim * width
        keeping = sum(kind != _LINEAR for kind in kinds)
        gives(
            trial,
            list(kinds),
            heads,
            dim,
            width,
            expected=keeping * one,
            given=f"{what} ({len(kinds)} layers, {heads} KV heads, {dim} numbers of {width} bytes)",
            because=f"{keeping} of the layers keep K and V, {one:,} bytes each",
            mistakes={
                f"that counts all {len(kinds)} layers": len(kinds) * one,
                "sliding layers write each token, too": kinds.count(_FULL) * one,
                "that is K or V alone": keeping * one // 2,
                "that counts the linear layers": kinds.count(_LINEAR) * one,
                "that is one layer": one,
            },
        )
    return "Qwen3.5-4B: 8 of 32 layers keep tokens, 32,768 bytes each time and not 131,072."


exercise = Exercise(
    id="11.hybrid_bytes",
    title="The factor 4",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "all layers",
            edited(SOLUTION, 'sum(kind != "linear_attention" for kind in layer_types)', "len(layer_types)"),
            says="that counts all 2 layers",
        ),
        WrongAnswer(
            "only full layers",
            edited(SOLUTION, '!= "linear_attention"', '== "full_attention"'),
            says="sliding layers write each token, too",
        ),
        WrongAnswer("forgets V", edited(SOLUTION, "return 2 * ", "return "), says="that is K or V alone"),
        WrongAnswer(
            "the other layers",
            edited(SOLUTION, '!= "linear', '== "linear'),
            says="8 of the layers keep K and V, 4,096 bytes each; got 98304: that counts the linear layers",
        ),
        WrongAnswer(
            "one layer of each kind",
            edited(
                SOLUTION,
                'sum(kind != "linear_attention" for kind in layer_types)',
                'len(set(layer_types) - {"linear_attention"})',
            ),
            says="that is one layer",
        ),
    ],
)
