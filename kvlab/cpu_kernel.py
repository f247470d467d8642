"""The compiled inner loops of the CPU decode path: one walk over the positions of one sequence.

Decoding reads every K and V once and does little with each, so the walk keeps pace with memory only if it
does next to nothing else. It reads a position's row across all KV heads, two positions for up to four query
heads at a time, in vectors of LANES numbers, and with each it asks for what it needs AHEAD positions later,
because the hardware cannot guess where the next block lies. float16 is widened by the processor itself,
bfloat16 two numbers at a time, which puts the even and the odd places apart.
numba compiles this on first use and keeps the result; it checks this one file for changes, so all stays here.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 8  # float32 numbers in one vector: two registers where a register has 128 bits
TILE = 64  # positions between two updates of the online softmax
AHEAD = 4  # positions from the row that is read to the row that is asked for
# Sums may be reordered and products fused, but infinities and NaN keep their meaning.
FAST = ("reassoc", "contract", "nsz", "arcp")

STEP = 2 * LANES  # dimensions that the inner loops take at a time

_SIZE, _LLVM_SIZE = types.int64, ir.IntType(64)
_FLOATS, _WORDS = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(ir.IntType(32), LANES)


def _pointer(context, builder, kind, array, index):
    return builder.gep(context.make_array(kind)(context, builder, array).data, [index])


def _load(builder, pointer, kind, align):
    return builder.load(builder.bitcast(pointer, kind.as_pointer()), align=align)


def _numbers(context, builder, kind, array, index):
    """STEP stored numbers as two vectors: the halves in order, but for bfloat16 the even and the odd places.

    uint16 holds the bits of bfloat16, whose upper half of float32 they are; int16 holds those of float16.
    """
    pointer = _pointer(context, builder, kind, array, index)
    if kind.dtype == types.uint16:
        pairs = _load(builder, pointer, _WORDS, 2)  # an odd place is the upper half of its pair
        even = builder.shl(pairs, ir.Constant(_WORDS, [16] * LANES))
        odd = builder.and_(pairs, ir.Constant(_WORDS, [0xFFFF0000] * LANES))
        return [builder.bitcast(words, _FLOATS) for words in (even, odd)]
    pointers = [pointer, builder.gep(pointer, [_LLVM_SIZE(LANES)])]
    if kind.dtype == types.float32:
        return [_load(builder, half, _FLOATS, 4) for half in pointers]
    halves = ir.VectorType(ir.HalfType(), LANES)
    return [builder.fpext(_load(builder, half, halves, 2), _FLOATS) for half in pointers]


def _prefetch(context, builder, kind, array, index):
    """Ask for the cache line of array[index], without waiting for it."""
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    request = builder.module.declare_intrinsic(
        "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    )
    pointer = builder.bitcast(_pointer(context, builder, kind, array, index), byte)
    builder.call(request, [pointer, number(0), number(3), number(1)])  # to read, keep, data


def _pair(context, builder, kind, array, rows, dim):
    """STEP numbers of each of the first two rows; the same place in the next two is asked for."""
    own, later = rows[:2], rows[2:]
    for row in later:
        _prefetch(context, builder, kind, array, builder.add(row, dim))
    return [_numbers(context, builder, kind, array, builder.add(row, dim)) for row in own]


def _multiply_add(builder, a, b, c):
    return builder.fadd(builder.fmul(a, b, flags=FAST), c, flags=FAST)


def _steps(builder, dims):
    """A loop over the first dimension of every STEP of a row."""
    return cgutils.for_range_slice(builder, dims.type(0), dims, dims.type(STEP), inc=True)


def _add_up(builder, vectors):
    """One vector with the sum of each of up to LANES vectors: neighbours are added, three times over."""

    def pick(a, b, lanes):
        return builder.shuffle_vector(a, b, ir.Constant(_WORDS, lanes))

    vectors = vectors + [ir.Constant(_FLOATS, ir.Undefined)] * (LANES - len(vectors))
    evens, odds = [0, 2, 8, 10, 4, 6, 12, 14], [1, 3, 9, 11, 5, 7, 13, 15]
    lower, upper = [0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]
    for first, second in ((evens, odds), (evens, odds), (lower, upper)):
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [builder.fadd(pick(a, b, first), pick(a, b, second), flags=FAST) for a, b in pairs]
    return vectors[0]


def _for_heads(builder, heads, emit):
    """emit(n) for the n from 1 to 4 that `heads` turns out to be: each count has its own registers."""
    for count in (1, 2, 3, 4):
        with builder.if_then(builder.icmp_signed("==", heads, heads.type(count))):
            emit(count)


@intrinsic
def dots(typing, heads, q, q_at, k, rows, dims, scores, ats):
    """scores[ats[i] + h] = q[h] . k[rows[i]] for two rows of K and the heads h of q that begin at q_at.

    rows: where the two rows begin, then the two to ask for.
    """

    def generate(context, builder, signature, args):
        heads, q, q_at, k, rows, dims, scores, ats = args
        q_kind, k_kind, s_kind = signature.args[1], signature.args[3], signature.args[6]
        rows, ats = cgutils.unpack_tuple(builder, rows), cgutils.unpack_tuple(builder, ats)

        def emit(count):
            places = [cgutils.alloca_once(builder, _FLOATS) for _ in range(2 * count)]
            for place in places:
                builder.store(ir.Constant(_FLOATS, [0.0] * LANES), place)
            with _steps(builder, dims) as (dim, _):
                keys = _pair(context, builder, k_kind, k, rows, dim)
                for head in range(count):
                    at = builder.add(builder.add(q_at, dim), builder.mul(dims, dims.type(head)))
                    queries = _numbers(context, builder, q_kind, q, at)
                    for key, place in zip(keys, places[head::count], strict=True):
                        for half in zip(queries, key, strict=True):
                            builder.store(_multiply_add(builder, *half, builder.load(place)), place)
            totals = _add_up(builder, [builder.load(place) for place in places])
            for i, at in enumerate(ats):
                lanes = list(range(i * count, (i + 1) * count))
                own = ir.Constant(ir.VectorType(ir.IntType(32), count), lanes)
                own = builder.shuffle_vector(totals, totals, own)
                pointer = _pointer(context, builder, s_kind, scores, at)
                builder.store(own, builder.bitcast(pointer, own.type.as_pointer()), align=4)

        _for_heads(builder, heads, emit)
        return context.get_dummy_value()

    return types.void(_SIZE, q, _SIZE, k, rows, _SIZE, scores, ats), generate


@intrinsic
def add_rows(typing, heads, acc, acc_at, v, rows, dims, weights, ats):
    """acc[h] += the sum of weights[ats[i] + h] v[rows[i]] over two rows, for the heads h from acc_at on.

    rows: as for `dots`.
    """

    def generate(context, builder, signature, args):
        heads, acc, acc_at, v, rows, dims, weights, ats = args
        a_kind, v_kind, w_kind = signature.args[1], signature.args[3], signature.args[6]
        rows, ats = cgutils.unpack_tuple(builder, rows), cgutils.unpack_tuple(builder, ats)

        def emit(count):
            spread = [
                [_spread(context, builder, w_kind, weights, at, head) for at in ats] for head in range(count)
            ]
            with _steps(builder, dims) as (dim, _):
                values = _pair(context, builder, v_kind, v, rows, dim)
                for head in range(count):
                    at = builder.add(builder.add(acc_at, dim), builder.mul(dims, dims.type(head)))
                    totals = _numbers(context, builder, a_kind, acc, at)
                    for half, total in enumerate(totals):
                        for weight, value in zip(spread[head], values, strict=True):
                            total = _multiply_add(builder, weight, value[half], total)
                        place = builder.add(at, at.type(half * LANES))
                        pointer = _pointer(context, builder, a_kind, acc, place)
                        builder.store(total, builder.bitcast(pointer, _FLOATS.as_pointer()), align=4)

        _for_heads(builder, heads, emit)
        return context.get_dummy_value()

    return types.void(_SIZE, acc, _SIZE, v, rows, _SIZE, weights, ats), generate


def _spread(context, builder, kind, weights, at, head):
    """weights[at + head] in all lanes of a vector."""
    number = builder.load(_pointer(context, builder, kind, weights, builder.add(at, at.type(head))))
    one = builder.insert_element(ir.Constant(_FLOATS, ir.Undefined), number, ir.IntType(32)(0))
    return builder.shuffle_vector(one, one, ir.Constant(_WORDS, [0] * LANES))


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
    for h in range(num_heads):
        top = tops[h]
        for t in range(count):
            top = max(top, scores[t * num_heads + h])
        tops[h] = top
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
    known, num_heads = len(rows) - 1, num_kv_heads * group
    for i in range(0, count, 2):
        j, next_i, next_j = min(i + 1, count - 1), min(i + AHEAD, known), min(i + AHEAD + 1, known)
        for head in range(num_kv_heads):
            at = head * head_stride
            own = (rows[i] + at, rows[j] + at, rows[next_i] + at, rows[next_j] + at)
            for h in range(head * group, (head + 1) * group, 4):
                heads, ats = min(4, (head + 1) * group - h), (i * num_heads + h, j * num_heads + h)
                dots(heads, q, h * dims, k, own, dims, scores, ats)


@njit(fastmath=set(FAST), nogil=True, cache=True)
def add_tile(acc, v, rows, count, head_stride, num_kv_heads, group, dims, weights):
    """Add weights [count, Hq] times the V rows at rows[:count] to acc [Hq * D]; rows as for `score_tile`."""
    known, num_heads = len(rows) - 1, num_kv_heads * group
    if count % 2:
        weights[count * num_heads : (count + 1) * num_heads] = 0  # the odd row's partner adds nothing
    for i in range(0, count, 2):
        j, next_i, next_j = min(i + 1, count - 1), min(i + AHEAD, known), min(i + AHEAD + 1, known)
        for head in range(num_kv_heads):
            at = head * head_stride
            own = (rows[i] + at, rows[j] + at, rows[next_i] + at, rows[next_j] + at)
            for h in range(head * group, (head + 1) * group, 4):
                heads, ats = min(4, (head + 1) * group - h), (i * num_heads + h, (i + 1) * num_heads + h)
                add_rows(heads, acc, h * dims, v, own, dims, weights, ats)


@njit(fastmath=set(FAST), nogil=True, cache=True)
def walk(q, k, v, strides, table, block_size, begin, end, shape, acc, tops, sums):
    """Attention of one sequence's query heads over its positions begin .. end - 1.

    q: float32 [Hq * D], scaled so that weights are powers of 2. k, v: the caches' storage, flat; strides: of
    (block, slot, head) in k, then in v. table: int32 [max_blocks]. shape: Hkv, Hq / Hkv, D, the last a
    multiple of STEP. Results: acc [Hq * D] not yet divided by sums [Hq], relative to the maxima tops [Hq].
    q and acc have the numbers of a head in the order that `_numbers` gives.
    """
    num_kv_heads, group, dims = shape
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


@intrinsic
def take(typing, counter):
    """The counter's number before 1 is added to it, so that no two threads are given the same one."""

    def generate(context, builder, signature, args):
        pointer = _pointer(context, builder, signature.args[0], args[0], _LLVM_SIZE(0))
        return builder.atomic_rmw("add", pointer, _LLVM_SIZE(1), "monotonic")

    return _SIZE(counter), generate


@njit(nogil=True, cache=True)
def walk_all(counter, parts, q, k, v, strides, tables, block_size, shape, acc, tops, sums):
    """Walk parts until none is left; several threads share the counter, so one that is held up does fewer.

    counter: int64 [1], 0 at first. parts: int64 [P, 3] of sequence, begin, end. q: float32 [S, Hq * D];
    tables: int32 [S, max_blocks]; acc, tops, sums: a row a part. The rest as for `walk`.
    """
    part = take(counter)
    while part < len(parts):
        seq, begin, end = parts[part]
        own = acc[part], tops[part], sums[part]
        walk(q[seq], k, v, strides, tables[seq], block_size, begin, end, shape, *own)
        part = take(counter)
