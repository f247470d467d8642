"""03.flat_address: from a slot to the element of the [L, N, B, Hkv, D] tensor."""

from kvlab.exercises.exercise import Exercise, WrongAnswer, edited
from kvlab.exercises.trial import Trial

STUB = '''\
def flat_address(shape, num_query_heads, layer, block, offset, query_head):
    """Where the K vector that a query head reads begins in the flat tensor, in elements.

    Args:
        shape: (L, N, B, Hkv, D), the contiguous cache of K: layers, blocks, slots, KV heads, head_dim.
        num_query_heads: Hq, a multiple of Hkv; Hq // Hkv query heads in a row share one KV head.
        layer, block, offset, query_head: which vector, each counted from 0.

    Returns:
        int: number of elements before k[layer, block, offset, kv_head, 0].

    Raises:
        IndexError: one of them is outside its axis.

    Worked line: shape (2, 8, 4, 2, 16), Hq 4, layer 1, block 7, offset 2, query head 3 -> 2000.
    """
    ...  # about 6 lines
'''

SOLUTION = '''\
def flat_address(shape, num_query_heads, layer, block, offset, query_head):
    """Elements before k[layer, block, offset, kv_head, 0] in a contiguous [L, N, B, Hkv, D]."""
    *sizes, head_dim = shape
    kv_head = query_head // (num_query_heads // sizes[3])
    address = 0
    for index, size in zip((layer, block, offset, kv_head), sizes, strict=True):
        if not 0 <= index < size:
            raise IndexError(f"index {index} is outside an axis of {size}")
        address = address * size + index
    return address * head_dim
'''

HINTS = (
    "Start at the right: one step in the head axis skips D elements, one slot skips Hkv * D, one block skips"
    " B * Hkv * D, one layer skips N * B * Hkv * D. Only KV heads are stored.",
    "With Hq = 4 and Hkv = 2, query heads 0 and 1 read KV head 0, and 2 and 3 read KV head 1: integer "
    "division by"
    " the group size `num_query_heads // num_kv_heads`. Check each index against its axis before you "
    "multiply.",
)

# (shape, Hq, layer, block, offset, query head)
_CASES = [
    ((2, 8, 4, 2, 16), 4, 0, 0, 0, 0),
    ((2, 8, 4, 2, 16), 4, 0, 0, 0, 1),
    ((2, 8, 4, 2, 16), 4, 0, 1, 0, 0),
    ((2, 8, 4, 2, 16), 4, 1, 0, 0, 0),
    ((2, 8, 4, 2, 16), 4, 1, 7, 2, 3),
    ((30, 100, 16, 3, 64), 9, 29, 99, 15, 8),
    ((1, 10, 2, 4, 8), 4, 0, 9, 1, 3),
]
_OUTSIDE = [
    ((2, 8, 4, 2, 16), 4, 0, 8, 0, 0, "blocks are numbered 0 to 7"),
    ((2, 8, 4, 2, 16), 4, 0, 1, 4, 0, "a block has slots 0 to 3; the next one belongs to another block"),
    ((2, 8, 4, 2, 16), 4, 0, 1, 0, 4, "there are query heads 0 to 3"),
    ((2, 8, 4, 2, 16), 4, 0, -1, 0, 0, "-1 is no block: it is what pads a table"),
]


def _strides(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    _, blocks, slots, heads, dim = shape
    return blocks * slots * heads * dim, slots * heads * dim, heads * dim, dim


def check(trial: Trial) -> str:
    for shape, query_heads, layer, block, offset, query_head in _CASES:
        group = query_heads // shape[3]
        kv_head = query_head // group
        strides = _strides(shape)
        indices = (layer, block, offset, kv_head)
        expected = sum(index * stride for index, stride in zip(indices, strides, strict=True))
        sums = " + ".join(f"{index} * {stride}" for index, stride in zip(indices, strides, strict=True))
        trial.gives(
            shape,
            query_heads,
            layer,
            block,
            offset,
            query_head,
            expected=expected,
            given=_given(shape, query_heads, layer, block, offset, query_head),
            because=f"query head {query_head} reads KV head {query_head} // {group} = {kv_head}, and {sums} "
            f"= {expected}",
        )
    for *arguments, because in _OUTSIDE:
        trial.raises(IndexError, *arguments, given=_given(*arguments), because=because)
    return "The strides count KV heads, and every index stays inside its axis."


def _given(shape: tuple, query_heads: int, layer: int, block: int, offset: int, query_head: int) -> str:
    return (
        f"shape {shape}, Hq = {query_heads}, layer {layer}, block {block}, offset {offset}, "
        f"query head {query_head}"
    )


_HEAD = "query_head // (num_query_heads // sizes[3])"

exercise = Exercise(
    id="03.flat_address",
    title="The element in the tensor",
    stub=STUB,
    hints=HINTS,
    solution=SOLUTION,
    check=check,
    wrong=[
        WrongAnswer(
            "query head for KV head",
            edited(SOLUTION, _HEAD, "query_head"),
            says="query head 1 reads KV head 1 // 2 = 0",
        ),
        WrongAnswer(
            "heads dealt round robin",
            edited(SOLUTION, _HEAD, "query_head % sizes[3]"),
            says="reads KV head 1 // 2 = 0",
        ),
        WrongAnswer(
            "strides of query heads",
            edited(SOLUTION, "    address = 0\n", "    address, sizes[3] = 0, num_query_heads\n"),
            says="0 * 1024 + 1 * 128",
        ),
        WrongAnswer(
            "head_dim forgotten",
            edited(SOLUTION, "return address * head_dim", "return address"),
            says="block 1, offset 0, query head 0: expected 128",
        ),
        WrongAnswer(
            "axes in another order",
            edited(SOLUTION, "(layer, block, offset, kv_head)", "(block, layer, offset, kv_head)"),
            says="block 1, offset 0, query head 0: expected 128",
        ),
        WrongAnswer(
            "no check of the axes",
            edited(SOLUTION, "if not 0 <= index < size:", "if False:"),
            says="expected an IndexError, because blocks are numbered 0 to 7",
        ),
        WrongAnswer(
            "negative block accepted",
            edited(SOLUTION, "if not 0 <= index < size:", "if index >= size:"),
            says="-1 is no block",
        ),
    ],
)
