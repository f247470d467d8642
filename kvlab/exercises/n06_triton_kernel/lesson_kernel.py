"""The kernel of notebook 06 as text. It calls five functions that the learner writes."""

PARTS = ("split_bounds", "addresses", "load_tile", "online_update", "reduce_splits")

KERNEL = """\
@triton.jit
def decode_kernel(
    q, k_cache, v_cache, block_tables, context_lens, outputs, sums, scale,
    table_stride, block_stride, slot_stride, head_stride,
    GROUP: tl.constexpr, ROWS: tl.constexpr, HEAD_DIM: tl.constexpr,
    BLOCK_SIZE: tl.constexpr, TILE: tl.constexpr,
):
    seq, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    num_heads, num_splits = tl.num_programs(1) * GROUP, tl.num_programs(2)
    lanes, dims = tl.arange(0, ROWS), tl.arange(0, HEAD_DIM)  # the group, padded to ROWS
    real = lanes < GROUP
    rows = seq * num_heads + kv_head * GROUP + lanes  # [G], query heads of this KV head
    q_at = q + rows[:, None] * HEAD_DIM + dims[None, :]
    query = tl.load(q_at, mask=real[:, None], other=0.0)  # [G, D]

    length = tl.load(context_lens + seq)
    begin, end = split_bounds(length, split, num_splits, TILE)  # yours
    top = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, HEAD_DIM], tl.float32)
    for start in range(begin, end, TILE):
        positions = start + tl.arange(0, TILE)  # [T]
        inside = positions < end
        table = block_tables + seq * table_stride
        offsets = addresses(  # yours, [T]
            table, positions, inside, block_stride, slot_stride, BLOCK_SIZE
        )
        offsets += kv_head * head_stride
        keys = load_tile(k_cache, offsets, dims, inside)  # yours, [T, D]
        values = load_tile(v_cache, offsets, dims, inside)  # [T, D]
        scores = scale * tl.dot(query, tl.trans(keys), input_precision="ieee")  # [G, T]
        scores = tl.where(inside[None, :], scores, -float("inf"))
        top, total, acc = online_update(top, total, acc, scores, values)  # yours

    at = rows * num_splits + split
    some = tl.where(total == 0.0, 1.0, total)  # an empty split gives zeros
    tl.store(sums + at, top + tl.log(some), mask=real)
    out_at = outputs + at[:, None] * HEAD_DIM + dims[None, :]
    tl.store(out_at, acc / some[:, None], mask=real[:, None])


@triton.jit
def reduce_kernel(
    outputs, sums, out, num_splits,
    HEAD_DIM: tl.constexpr, SPLITS: tl.constexpr,
):
    row = tl.program_id(0)  # one query head of one sequence
    splits, dims = tl.arange(0, SPLITS), tl.arange(0, HEAD_DIM)
    real, at = splits < num_splits, row * num_splits + splits
    lse = tl.load(sums + at, mask=real, other=-float("inf"))  # [SPLITS]
    parts_at = outputs + at[:, None] * HEAD_DIM + dims[None, :]
    parts = tl.load(parts_at, mask=real[:, None], other=0.0)  # [SPLITS, D]
    tl.store(out + row * HEAD_DIM + dims, reduce_splits(lse, parts))  # yours, [D]
"""


def show_kernel():
    """The kernel's text, coloured in a notebook."""
    from IPython.display import Code

    return Code(KERNEL, language="python")
