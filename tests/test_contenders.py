"""All ways to attend give one result, read memory that is not in the cache, and say why when they cannot."""

import pytest
import torch

from kvlab import contenders
from kvlab.attention import attention_oracle
from kvlab.bandwidth import COPY, READ, limits
from kvlab.contenders import CONTIGUOUS, GATHER, GROW, LIMITS, PAGED, Buffers, agree, line_up, picked
from kvlab.flex_contender import add_flex, paged_mask, why_not
from kvlab.traffic import DecodeShape

SMALL = DecodeShape(2, 37, 4, 2, 32, 16)


@pytest.fixture(autouse=True)
def small_cache(monkeypatch):
    monkeypatch.setattr(contenders, "last_level_cache", lambda device: 50_000)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("block_size", [1, 16, 64])
def test_all_give_what_the_oracle_gives(dtype, block_size):
    buffers = Buffers(SMALL._replace(dtype=dtype, block_size=block_size))
    field = line_up(buffers, backends=("cpu", "reference"))
    assert set(field.runs) == {*LIMITS, CONTIGUOUS, GATHER, GROW, PAGED + "cpu", PAGED + "reference"}
    k, v = buffers.gathered()  # [S, Hkv, T, D] each
    for name in set(field.runs) - set(LIMITS):
        out = field.runs[name]()
        for s in range(SMALL.num_seqs):
            expected = attention_oracle(buffers.q[s], k[s].transpose(0, 1), v[s].transpose(0, 1))
            assert (out[s].double() - expected).abs().max() < contenders.TOLERANCE[dtype], name
    agree(field)


def test_one_that_differs_is_named():
    field = line_up(Buffers(SMALL), backends=("reference",))
    field.runs[GATHER] = lambda: field.runs[CONTIGUOUS]() + 1
    with pytest.raises(AssertionError, match="gather, then SDPA differs from contiguous SDPA by 1"):
        agree(field)


def test_every_use_takes_the_next_copy_whoever_comes():
    buffers = Buffers(SMALL)
    assert buffers.num_copies > 2
    field = line_up(buffers, backends=("reference",))
    before = buffers.whole().data_ptr()
    used = []
    take = buffers.whole
    buffers.whole = lambda: used.append(take()) or used[-1]
    for name in (CONTIGUOUS, GROW, CONTIGUOUS):
        field.runs[name]()
    pointers = [tensor.data_ptr() for tensor in used]
    assert len({before, *pointers}) == min(4, buffers.num_copies)


def test_blocks_are_scattered_and_the_same_in_every_run():
    one, two = Buffers(SMALL), Buffers(SMALL)
    assert torch.equal(one.tables, two.tables) and torch.equal(one.q, two.q)
    assert sorted(one.tables.flatten().tolist()) == list(range(6))
    assert one.tables.flatten().tolist() != list(range(6))
    assert not torch.equal(one.q, Buffers(SMALL, seed=1).q)


def test_float8_says_what_cannot_read_it():
    buffers = Buffers(SMALL._replace(dtype="float8_e4m3fn"))
    field = line_up(buffers)
    assert picked(buffers) == "reference"
    assert set(field.runs) == {*LIMITS, PAGED + "reference"}
    assert all("takes no float8" in why for why in field.left_out.values()) and len(field.left_out) == 3
    agree(field)


def test_the_limits_touch_every_byte():
    kv = torch.arange(64, dtype=torch.int64).view(2, 32)
    runs = limits(lambda: kv)
    assert runs[READ]().item() == 64 * 63 // 2
    assert torch.equal(runs[COPY](), kv)


@pytest.mark.parametrize("lens", [[256, 1], [300, 128], [384, 383]])
def test_the_mask_of_flexattention_names_the_blocks_of_each_sequence(lens):
    tables = torch.tensor([[4, 0, 2], [5, 1, 3]], dtype=torch.int32)
    lens = torch.tensor(lens, dtype=torch.int32)
    mask = paged_mask(tables, lens, 128, 6 * 128)
    dense = mask.to_dense()[:, 0, 0]  # [S, N]
    for s in range(2):
        count = -(-int(lens[s]) // 128)
        assert dense[s].nonzero().flatten().tolist() == sorted(tables[s, :count].tolist())
        inside = [bool(mask.mask_mod(s, 0, 0, torch.tensor(slot))) for slot in range(6 * 128)]
        expected = {int(tables[s, t // 128]) * 128 + t % 128 for t in range(int(lens[s]))}
        assert {slot for slot, here in enumerate(inside) if here} == expected


def test_flexattention_says_why_it_is_left_out(monkeypatch):
    pages = Buffers(SMALL._replace(block_size=128))
    assert "multiples of 128 slots, and smaller blocks" in why_not(Buffers(SMALL))
    assert why_not(Buffers(SMALL._replace(block_size=128, dtype="float8_e4m3fn"))) == "it takes no float8"
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert "needs a C++ compiler" in why_not(pages)
    monkeypatch.setattr("shutil.which", lambda name: "here")
    assert why_not(pages) is None

    def broken(*args, **options):
        raise RuntimeError("no")

    monkeypatch.setattr(torch, "compile", broken)
    field = line_up(pages, backends=("reference",))
    add_flex(field, pages, wanted=True)
    assert field.left_out["FlexAttention"] == "it does not compile here (RuntimeError)"
    add_flex(field, pages, wanted=False)
    assert "not asked for" in field.left_out["FlexAttention"]


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_flexattention_runs_where_it_compiles(monkeypatch):
    """The wiring, without the compiler: the eager function takes the same arguments."""
    monkeypatch.setattr("shutil.which", lambda name: "here")
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    pages = Buffers(SMALL._replace(block_size=128, context=200))
    field = line_up(pages, backends=("reference",))
    add_flex(field, pages, wanted=True)
    assert "FlexAttention" in field.runs
    agree(field)
