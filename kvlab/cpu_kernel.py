"""The compiled inner loops of the CPU decode path: one walk over the positions of one sequence.

Decoding reads every K and V once and does little with each, so the walk keeps pace with memory only if it
does next to nothing else. It reads a position's row across all KV heads, two positions for up to four query
heads at a time, in vectors of LANES numbers, and asks for rows AHEAD positions early, because the hardware
cannot guess where the next block lies. bfloat16 is widened by a shift, float16 by the processor itself.
numba compiles this on first use and keeps the result; it checks this one file for changes, so all stays here.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 8  # float32 numbers in one vector: two registers where a register has 128 bits
TILE = 16  # positions between two updates of the online softmax
AHEAD = 4  # positions from the row that is read to the row that is asked for
# Sums may be reordered and products fused, but infinities and NaN keep their meaning.
FAST = ("reassoc", "contract", "nsz", "arcp")

_FLOATS = ir.VectorType(ir.FloatType(), LANES)


def _pointer(context, builder, kind, array, index):
    return builder.gep(context.make_array(kind)(context, builder, array).data, [index])


def _load(builder, kind, pointer):
    """LANES stored numbers as float32: float32, uint16 holds the bits of bfloat16, int16 those of float16."""
    stored = {types.float32: ir.FloatType(), types.uint16: ir.IntType(16), types.int16: ir.HalfType()}[
        kind.dtype
    ]
    vector = ir.VectorType(stored, LANES)
    loaded = builder.load(builder.bitcast(pointer, vector.as_pointer()), align=kind.dtype.bitwidth // 8)
    if kind.dtype == types.float32:
        return loaded
    if kind.dtype == types.int16:
        return builder.fpext(loaded, _FLOATS)
    wide = ir.VectorType(ir.IntType(32), LANES)
    return builder.bitcast(builder.shl(builder.zext(loaded, wide), ir.Constant(wide, [16] * LANES)), _FLOATS)


def _multiply_add(builder, a, b, c):
    return builder.fadd(builder.fmul(a, b, flags=FAST), c, flags=FAST)


def _chunks(builder, dims):
    """A loop over the first dimension of each vector of a row."""
    return cgutils.for_range_slice(builder, dims.type(0), dims, dims.type(LANES), inc=True)


def _sum(builder, vector):
    name = f"llvm.vector.reduce.fadd.v{LANES}f32"
    reduce = builder.module.declare_intrinsic(
        name, (), ir.FunctionType(ir.FloatType(), [ir.FloatType(), _FLOATS])
    )
    return builder.call(reduce, [ir.Constant(ir.FloatType(), -0.0), vector], fastmath=FAST)


def _for_heads(builder, heads, emit):
    """emit(n) for the n from 1 to 4 that `heads` turns out to be: each count has its own registers."""
    for count in (1, 2, 3, 4):
        with builder.if_then(builder.icmp_signed("==", heads, heads.type(count))):
            emit(count)


def _rows(context, builder, kind, array, rows, dim):
    """The next LANES numbers of two rows of K or V."""
    return [
        _load(builder, kind, _pointer(context, builder, kind, array, builder.add(row, dim))) for row in rows
    ]


@intrinsic
def dots(typing, heads, q, q_at, k, row0, row1, dims, scores, at0, at1):
    """scores[at_i + h] = q[h] . k[row_i] for two rows of K and the heads h of q that begin at q_at."""

    def generate(context, builder, signature, args):
        heads, q, q_at, k, row0, row1, dims, scores, *ats = args
        q_kind, k_kind, s_kind = signature.args[1], signature.args[3], signature.args[7]

        def emit(count):
            zeros = ir.Constant(_FLOATS, [0.0] * LANES)
            sums = [[cgutils.alloca_once(builder, _FLOATS) for _ in ats] for _ in range(count)]
            for place in (place for pair in sums for place in pair):
                builder.store(zeros, place)
            with _chunks(builder, dims) as (dim, _):
                keys = _rows(context, builder, k_kind, k, (row0, row1), dim)
                for head in range(count):
                    at = builder.add(builder.add(q_at, dim), builder.mul(dims, dims.type(head)))
                    query = _load(builder, q_kind, _pointer(context, builder, q_kind, q, at))
                    for key, place in zip(keys, sums[head], strict=True):
                        builder.store(_multiply_add(builder, query, key, builder.load(place)), place)
            for head in range(count):
                for at, place in zip(ats, sums[head], strict=True):
                    score = _pointer(context, builder, s_kind, scores, builder.add(at, at.type(head)))
                    builder.store(_sum(builder, builder.load(place)), score)

        _for_heads(builder, heads, emit)
        return context.get_dummy_value()

    size = types.int64
    return types.void(size, q, size, k, size, size, size, scores, size, size), generate


@intrinsic
def add_rows(typing, heads, acc, acc_at, v, row0, row1, dims, weights, at0, at1):
    """acc[h] += weights[at0 + h] v[row0] + weights[at1 + h] v[row1] for the heads h that begin at acc_at."""

    def generate(context, builder, signature, args):
        heads, acc, acc_at, v, row0, row1, dims, weights, *ats = args
        a_kind, v_kind, w_kind = signature.args[1], signature.args[3], signature.args[7]

        def emit(count):
            spread = [
                [_spread(context, builder, w_kind, weights, at, head) for at in ats] for head in range(count)
            ]
            with _chunks(builder, dims) as (dim, _):
                values = _rows(context, builder, v_kind, v, (row0, row1), dim)
                for head in range(count):
                    at = builder.add(builder.add(acc_at, dim), builder.mul(dims, dims.type(head)))
                    place = _pointer(context, builder, a_kind, acc, at)
                    total = _load(builder, a_kind, place)
                    for weight, value in zip(spread[head], values, strict=True):
                        total = _multiply_add(builder, weight, value, total)
                    builder.store(total, builder.bitcast(place, _FLOATS.as_pointer()), align=4)

        _for_heads(builder, heads, emit)
        return context.get_dummy_value()

    size = types.int64
    return types.void(size, acc, size, v, size, size, size, weights, size, size), generate


def _spread(context, builder, kind, weights, at, head):
    """weights[at + head] in all lanes of a vector."""
    number = builder.load(_pointer(context, builder, kind, weights, builder.add(at, at.type(head))))
    one = builder.insert_element(ir.Constant(_FLOATS, ir.Undefined), number, ir.IntType(32)(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


@intrinsic
def prefetch(typing, array, index):
    """Ask for the cache line of array[index], without waiting for it."""

    def generate(context, builder, signature, args):
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        pointer = builder.bitcast(_pointer(context, builder, signature.args[0], *args), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        request = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(request, [pointer, number(0), number(3), number(1)])  # to read, keep, data
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@njit(fastmath=set(FAST), nogil=True, cache=True)
def exp2(x):
    """2**x for float32 x <= 0 within 2e-7 of its value, by a polynomial over [-0.5, 0.5]; NaN stays NaN."""
    small = max(x, np.float32(-126.0))  # 2**-126 is the smallest normal number: near enough to 0
    whole = np.int32(small - np.float32(0.5))
    part = small - np.float32(whole)
    result = np.float32(1.5353362e-4)
    result = result * part + np.float32(1.3398874e-3)
    result = result * part + np.float32(9.6184370e-3)
    result = result * part + np.float32(5.5503324e-2)
    result = result * part + np.float32(2.4022648e-1)
    result = result * part + np.float32(6.9314720e-1)
    result = result * part + np.float32(1.0)
    scaled = result * np.int32((whole + np.int32(127)) << np.int32(23)).view(np.float32)
    return x if x != x else scaled


@njit(fastmath=set(FAST), nogil=True, cache=True)
def update_softmax(scores, count, num_heads, tops, sums, rescale):
    """Turn scores [count, Hq] into weights and bring the running maxima and sums [Hq] up to date.

    rescale [Hq] becomes the factor for what was added up under the old maxima; returns whether any is not 1.
    """
    changed = False
    for h in range(num_heads):
        rescale[h] = tops[h]
    for t in range(count):
        for h in range(num_heads):
            tops[h] = max(tops[h], scores[t * num_heads + h])
    for h in range(num_heads):
        changed |= rescale[h] != tops[h]
        rescale[h] = exp2(rescale[h] - tops[h])
        sums[h] *= rescale[h]
    for t in range(count):
        for h in range(num_heads):
            weight = exp2(scores[t * num_heads + h] - tops[h])
            scores[t * num_heads + h] = weight
            sums[h] += weight
    return changed


@njit(fastmath=set(FAST), nogil=True, cache=True)
def score_tile(q, k, rows, count, head_stride, num_kv_heads, group, dims, scores):
    """Scores [count, Hq] of the positions whose K rows begin at rows[:count]; later ones follow."""
    line, known, num_heads = 64 // k.itemsize, len(rows) - 1, num_kv_heads * group
    for i in range(0, count, 2):
        j, next_i, next_j = min(i + 1, count - 1), min(i + AHEAD, known), min(i + AHEAD + 1, known)
        for head in range(num_kv_heads):
            at = head * head_stride
            for dim in range(0, dims, line):
                prefetch(k, rows[next_i] + at + dim)
                prefetch(k, rows[next_j] + at + dim)
            for h in range(head * group, (head + 1) * group, 4):
                heads, out_i, out_j = min(4, (head + 1) * group - h), i * num_heads + h, j * num_heads + h
                dots(heads, q, h * dims, k, rows[i] + at, rows[j] + at, dims, scores, out_i, out_j)


@njit(fastmath=set(FAST), nogil=True, cache=True)
def add_tile(acc, v, rows, count, head_stride, num_kv_heads, group, dims, weights):
    """Add weights [count, Hq] times the V rows at rows[:count] to acc [Hq * D]; rows as for `score_tile`."""
    line, known, num_heads = 64 // v.itemsize, len(rows) - 1, num_kv_heads * group
    if count % 2:
        weights[count * num_heads : (count + 1) * num_heads] = 0  # the odd row's partner adds nothing
    for i in range(0, count, 2):
        j, next_i, next_j = min(i + 1, count - 1), min(i + AHEAD, known), min(i + AHEAD + 1, known)
        for head in range(num_kv_heads):
            at = head * head_stride
            for dim in range(0, dims, line):
                prefetch(v, rows[next_i] + at + dim)
                prefetch(v, rows[next_j] + at + dim)
            for h in range(head * group, (head + 1) * group, 4):
                heads, of_i, of_j = min(4, (head + 1) * group - h), i * num_heads + h, (i + 1) * num_heads + h
                add_rows(heads, acc, h * dims, v, rows[i] + at, rows[j] + at, dims, weights, of_i, of_j)


@njit(fastmath=set(FAST), nogil=True, cache=True)
def walk(q, k, v, strides, table, block_size, begin, end, num_kv_heads, group, dims, acc, tops, sums):
    """Attention of one sequence's query heads over its positions begin .. end - 1.

    q: float32 [Hq * D], scaled so that weights are powers of 2. k, v: the caches' storage, flat; strides: of
    (block, slot, head) in k, then in v. table: int32 [max_blocks]. Results: acc [Hq * D] not yet divided by
    sums [Hq], relative to the maxima tops [Hq]. D is a multiple of LANES.
    """
    num_heads = num_kv_heads * group
    k_block, k_slot, k_head, v_block, v_slot, v_head = strides
    acc[:], tops[:], sums[:] = 0, -np.inf, 0
    scores, rescale = np.empty((TILE + 1) * num_heads, np.float32), np.empty(num_heads, np.float32)
    k_rows, v_rows = np.empty((2, TILE + AHEAD + 1), np.int64)
    for start in range(begin, end, TILE):
        count, known = min(TILE, end - start), min(TILE + AHEAD + 1, end - start)
        for i in range(known):
            block, slot = np.int64(table[(start + i) // block_size]), (start + i) % block_size
            k_rows[i] = block * k_block + slot * k_slot
            v_rows[i] = block * v_block + slot * v_slot
        score_tile(q, k, k_rows[:known], count, k_head, num_kv_heads, group, dims, scores)
        if update_softmax(scores, count, num_heads, tops, sums, rescale):
            for h in range(num_heads):
                for dim in range(h * dims, (h + 1) * dims):
                    acc[dim] *= rescale[h]
        add_tile(acc, v, v_rows[:known], count, v_head, num_kv_heads, group, dims, scores)
