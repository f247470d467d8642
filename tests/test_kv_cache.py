"""The caches against plain dicts: each slot holds what was last written or copied there, nothing else."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kvlab.block_table import BlockCopy, Slot
from kvlab.kv_cache import ContiguousKVCache, PagedKVCache
from kvlab.kv_checks import KV_DTYPES

LAYERS, BLOCKS, HEADS, DIM = 2, 5, 2, 3


def tokens(count, first=1.0, dtype=torch.float32):
    """[count, HEADS, DIM]: token i is filled with first + i, exact in every dtype up to 16."""
    return (torch.arange(count) + first)[:, None, None].expand(count, HEADS, DIM).to(dtype)


def filled(block_size=3, dtype=torch.float32):
    """A cache in which K of slot s holds s + 1 and V holds -(s + 1), in both layers."""
    cache = PagedKVCache(LAYERS, BLOCKS, block_size, HEADS, DIM, dtype=dtype)
    k = tokens(BLOCKS * block_size, dtype=dtype)
    for layer in range(LAYERS):
        cache.write(layer, range(BLOCKS * block_size), k, (-k.float()).to(dtype))
    return cache


def slots_of(cache, layer=0):
    """The number in each slot's first lane of K, as a list over flat slots."""
    return cache.k[layer].float()[..., 0, 0].flatten().tolist()


# -- against a model: dict of slots -------------------------------------------------------------------------


@st.composite
def programs(draw):
    block_size = draw(st.integers(1, 4))
    block = st.integers(0, BLOCKS - 1)
    slot = st.integers(-1, BLOCKS * block_size - 1)
    copy = st.tuples(block, block, st.integers(1, block_size)).filter(lambda c: c[0] != c[1])
    step = st.one_of(
        st.tuples(
            st.just("write"),
            st.integers(0, LAYERS - 1),
            st.lists(slot, max_size=6, unique_by=lambda s: s if s >= 0 else object()),
        ),
        st.tuples(st.just("copy"), st.lists(copy, max_size=5)),
        st.tuples(
            st.just("gather"), st.integers(0, LAYERS - 1), st.lists(block, max_size=3), st.integers(0, 12)
        ),
    )
    return block_size, draw(st.lists(step, max_size=12)), draw(st.sampled_from(KV_DTYPES))


@given(programs())
def test_the_cache_equals_a_dict_of_slots(program):
    block_size, steps, dtype = program
    cache = PagedKVCache(LAYERS, BLOCKS, block_size, HEADS, DIM, dtype=dtype)
    model = {
        (layer, slot): (torch.zeros(HEADS, DIM), torch.zeros(HEADS, DIM))
        for layer in range(LAYERS)
        for slot in range(BLOCKS * block_size)
    }
    generator = torch.Generator().manual_seed(0)
    for kind, *rest in steps:
        if kind == "write":
            layer, slots = rest
            k, v = torch.randn(2, len(slots), HEADS, DIM, generator=generator).to(dtype)
            cache.write(layer, slots, k, v)
            for slot, key, value in zip(slots, k.float(), v.float(), strict=True):
                if slot >= 0:
                    model[layer, slot] = key, value
        elif kind == "copy":
            cache.copy([BlockCopy(*copy) for copy in rest[0]])
            for source, destination, count in rest[0]:
                for layer in range(LAYERS):
                    for offset in range(count):
                        content = model[layer, source * block_size + offset]
                        model[layer, destination * block_size + offset] = content
        else:
            layer, table, length = rest
            length = min(length, len(table) * block_size)
            k, v = cache.gather(layer, table, length)
            expected = [
                model[layer, table[t // block_size] * block_size + t % block_size] for t in range(length)
            ]
            assert k.shape == v.shape == (length, HEADS, DIM)
            assert all(torch.equal(k[t].float(), expected[t][0]) for t in range(length))
            assert all(torch.equal(v[t].float(), expected[t][1]) for t in range(length))
    for (layer, slot), (key, value) in model.items():
        block, offset = divmod(slot, block_size)
        assert torch.equal(cache.k[layer, block, offset].float(), key)
        assert torch.equal(cache.v[layer, block, offset].float(), value)


# -- write --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", KV_DTYPES)
@pytest.mark.parametrize(
    "slots",
    [
        [Slot(1, 2), Slot(0, 0), Slot(4, 1)],
        [(1, 2), (0, 0), (4, 1)],
        [5, 0, 13],
        torch.tensor([5, 0, 13]),
        torch.tensor([5, 0, 13], dtype=torch.int32),
    ],
    ids=["Slot", "pairs", "numbers", "int64 tensor", "int32 tensor"],
)
def test_every_form_of_slots_names_the_same_places(slots, dtype):
    cache = PagedKVCache(LAYERS, BLOCKS, 3, HEADS, DIM, dtype=dtype)
    cache.write(1, slots, tokens(3, dtype=dtype), tokens(3, 4, dtype=dtype))
    expected = [0.0] * 15
    expected[5], expected[0], expected[13] = 1, 2, 3
    assert slots_of(cache, layer=1) == expected
    assert slots_of(cache, layer=0) == [0.0] * 15
    assert cache.v[1, 4, 1].float().unique().tolist() == [6.0]


def test_minus_one_skips_the_token():
    cache = PagedKVCache(LAYERS, BLOCKS, 3, HEADS, DIM)
    cache.write(0, [-1, 4, -1], tokens(3), tokens(3))
    assert slots_of(cache) == [0, 0, 0, 0, 2] + [0] * 10


def test_no_tokens_is_no_change():
    cache = filled()
    before = cache.k.clone()
    cache.write(0, [], tokens(0), tokens(0))
    cache.copy([])
    assert torch.equal(cache.k, before)


REFUSED_WRITES = {
    "block past the end": (0, [(5, 0), (0, 0)], {}, r"block 5, offset 0.*blocks are 0 to 4, offsets 0 to 2"),
    "negative block": (0, [(0, 0), (-1, 0)], {}, r"block -1, offset 0"),
    "offset past the block": (0, [(0, 0), (0, 3)], {}, r"block 0, offset 3.*offsets 0 to 2"),
    "number past the end": (0, [0, 15], {}, r"slot 15 is outside.*0 to 14"),
    "number below -1": (0, [0, -2], {}, r"slot -2 is outside"),
    "the same slot twice": (0, [(1, 0), (1, 0)], {}, r"block 1 slot 0 is named twice"),
    "one slot, not a list": (0, Slot(0, 1), {}, r"single slot"),
    "fractions": (0, [0.0, 1.0], {}, r"integers"),
    "no pairs": (0, [(1,), (2,)], {}, r"two integers"),
    "layer": (2, [0, 1], {}, r"layer 2.*0 to 1"),
    "negative layer": (-1, [0, 1], {}, r"layer -1"),
    "too many tokens": (0, [0, 1], {"k": tokens(3)}, r"k has shape \[3, 2, 3\].*need \[2, 2, 3\]"),
    "wrong heads": (0, [0, 1], {"v": torch.zeros(2, 4, 3)}, r"v has shape \[2, 4, 3\].*need \[2, 2, 3\]"),
    "wrong head_dim": (0, [0, 1], {"k": torch.zeros(2, 2, 4)}, r"\[2, 2, 4\].*need \[2, 2, 3\]"),
    "one dimension less": (0, [0, 1], {"k": torch.zeros(2, 3)}, r"\[2, 3\].*need \[2, 2, 3\]"),
    "other dtype": (0, [0, 1], {"v": tokens(2).half()}, r"v is torch.float16, the cache is torch.float32"),
    "other device": (0, [0, 1], {"v": tokens(2).to("meta")}, r"v is on meta, the cache is on cpu"),
}


@pytest.mark.parametrize("case", REFUSED_WRITES.values(), ids=REFUSED_WRITES.keys())
def test_a_refused_write_says_why_and_changes_nothing(case):
    layer, slots, given_tokens, sentence = case
    cache = filled()
    before = cache.k.clone(), cache.v.clone()
    with pytest.raises(ValueError, match=sentence):
        cache.write(layer, slots, given_tokens.get("k", tokens(2)), given_tokens.get("v", tokens(2)))
    assert torch.equal(cache.k, before[0]) and torch.equal(cache.v, before[1])


# -- copy ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", KV_DTYPES)
def test_copy_takes_all_layers_and_only_num_slots(dtype):
    cache = filled(dtype=dtype)
    cache.copy([BlockCopy(source=1, destination=3, num_slots=2)])
    expected = [*range(1, 10), 4, 5, *range(12, 16)]
    assert slots_of(cache, 0) == slots_of(cache, 1) == expected
    assert cache.v[1, 3].float()[:, 0, 0].tolist() == [-4, -5, -12]


@pytest.mark.parametrize(
    ("copies", "expected"),
    [
        ([(0, 1, 2), (1, 2, 2)], [1, 2, 1, 2, 1, 2, 7, 8, 9, 10]),
        ([(1, 2, 2), (0, 1, 2)], [1, 2, 1, 2, 3, 4, 7, 8, 9, 10]),
        ([(0, 1, 1), (1, 2, 2)], [1, 2, 1, 4, 1, 4, 7, 8, 9, 10]),
        ([(0, 1, 2), (2, 1, 1)], [1, 2, 5, 2, 5, 6, 7, 8, 9, 10]),
        ([(0, 1, 2), (1, 0, 2)], [1, 2, 1, 2, 5, 6, 7, 8, 9, 10]),
    ],
    ids=["chain", "chain backwards", "part of a chain", "twice into one block", "there and back"],
)
def test_copies_of_a_batch_happen_in_order(copies, expected):
    cache = filled(block_size=2)
    cache.copy([BlockCopy(*copy) for copy in copies])
    assert slots_of(cache) == expected


REFUSED_COPIES = {
    "onto itself": ((2, 2, 1), r"block 2 is copied onto itself"),
    "source": ((5, 0, 1), r"copy source 5.*0 to 4"),
    "negative source": ((-1, 0, 1), r"copy source -1"),
    "destination": ((0, 7, 1), r"copy destination 7.*0 to 4"),
    "too many slots": ((0, 1, 4), r"num_slots 4.*1 to 3"),
    "no slots": ((0, 1, 0), r"num_slots 0.*1 to 3"),
}


@pytest.mark.parametrize("case", REFUSED_COPIES.values(), ids=REFUSED_COPIES.keys())
def test_a_refused_copy_says_why_and_changes_nothing(case):
    copy, sentence = case
    cache = filled()
    before = cache.k.clone()
    with pytest.raises(ValueError, match=sentence):
        cache.copy([BlockCopy(3, 4, 1), BlockCopy(*copy)])
    assert torch.equal(cache.k, before)


# -- gather, sizes ------------------------------------------------------------------------------------------


def test_gather_reads_in_logical_order():
    k, v = filled().gather(1, [3, 0], 5)
    assert k[:, 0, 0].tolist() == [10, 11, 12, 1, 2]
    assert v[:, 1, 2].tolist() == [-10, -11, -12, -1, -2]


def test_gather_is_a_copy():
    cache = filled()
    cache.gather(0, [0], 3)[0].zero_()
    assert slots_of(cache)[0] == 1


def test_gather_ignores_entries_behind_the_length():
    assert filled().gather(0, [1, -1, 99], 3)[0][:, 0, 0].tolist() == [4, 5, 6]


@pytest.mark.parametrize(
    ("layer", "table", "length", "error", "sentence"),
    [
        (0, [1, 2], 7, IndexError, r"length 7 does not fit.*hold 6 tokens"),
        (0, [1, 2], -1, IndexError, r"length -1"),
        (0, [1, 5], 4, ValueError, r"block 5.*0 to 4"),
        (0, [1, -1], 4, ValueError, r"block -1"),
        (2, [1], 1, ValueError, r"layer 2"),
    ],
)
def test_gather_never_reads_another_block_instead(layer, table, length, error, sentence):
    with pytest.raises(error, match=sentence):
        filled().gather(layer, table, length)


@pytest.mark.parametrize(("dtype", "size"), [*zip(KV_DTYPES, (4, 2, 2, 1), strict=True)])
def test_nbytes(dtype, size):
    assert PagedKVCache(2, 5, 3, 2, 7, dtype=dtype).nbytes == 2 * (2 * 5 * 3 * 2 * 7) * size


@pytest.mark.parametrize("dtype", [torch.int8, torch.float64])
def test_other_dtypes_are_refused(dtype):
    with pytest.raises(ValueError, match=r"float8_e4m3fn, not torch\."):
        PagedKVCache(1, 1, 1, 1, 1, dtype=dtype)


def test_empty_sizes_are_refused():
    with pytest.raises(ValueError, match=r"at least 1, got \[1, 0, 1, 1, 1\]"):
        PagedKVCache(1, 0, 1, 1, 1)


# -- contiguous ---------------------------------------------------------------------------------------------


def test_contiguous_holds_what_was_appended():
    cache = ContiguousKVCache(LAYERS, HEADS, DIM)
    for layer in range(LAYERS):
        cache.append(layer, tokens(2), -tokens(2))
        cache.append(layer, tokens(1, 3), -tokens(1, 3))
    k, v = cache.get(1)
    assert cache.length == 3
    assert k[:, 0, 0].tolist() == [1, 2, 3] and v[:, 1, 1].tolist() == [-1, -2, -3]


@pytest.mark.parametrize(("dtype", "size"), [*zip(KV_DTYPES, (4, 2, 2, 1), strict=True)])
def test_contiguous_counts_bytes_copied_and_the_peak(dtype, size):
    cache, token = ContiguousKVCache(LAYERS, HEADS, DIM, dtype=dtype), 2 * HEADS * DIM * size
    for _ in range(5):
        for layer in range(LAYERS):
            cache.append(layer, tokens(1, dtype=dtype), tokens(1, dtype=dtype))
    # Appending token n moves the n before it: 0 + 1 + 2 + 3 + 4 in each layer.
    assert cache.bytes_copied == LAYERS * 10 * token
    # The last append: layer 0 has 5 tokens, layer 1 its old 4 and its new 5 at once.
    assert cache.peak_bytes == (5 + 4 + 5) * token
    assert cache.nbytes == LAYERS * 5 * token


def test_contiguous_length_counts_tokens_that_every_layer_has():
    cache = ContiguousKVCache(LAYERS, HEADS, DIM)
    cache.append(0, tokens(2), tokens(2))
    assert cache.length == 0
    cache.append(1, tokens(2), tokens(2))
    assert cache.length == 2


@pytest.mark.parametrize(
    ("layer", "k", "v", "sentence"),
    [
        (2, tokens(1), tokens(1), "layer 2"),
        (0, tokens(1), tokens(2), r"v has shape \[2, 2, 3\].*need \[1, 2, 3\]"),
        (0, torch.zeros(1, 3, 3), tokens(1), r"k has shape \[1, 3, 3\].*need \[1, 2, 3\]"),
        (0, tokens(1).half(), tokens(1), "k is torch.float16"),
    ],
)
def test_contiguous_refuses_what_does_not_fit(layer, k, v, sentence):
    cache = ContiguousKVCache(LAYERS, HEADS, DIM)
    with pytest.raises(ValueError, match=sentence):
        cache.append(layer, k, v)
    assert cache.length == 0 and cache.peak_bytes == 0
