"""Sizes, shares and counts as people write them, and what is refused."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlab.units import (
    bytes_behind,
    dtype_bytes,
    format_bytes,
    has_decimals,
    parse_bytes,
    parse_count,
    parse_share,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("24GiB", 25_769_803_776),
        ("24GB", 24_000_000_000),
        ("24 gib", 25_769_803_776),
        ("24gb", 24_000_000_000),
        ("1KiB", 1024),
        ("1kB", 1000),
        ("2 MiB", 2_097_152),
        ("3TB", 3_000_000_000_000),
        ("5.68 GiB", 6_098_853_560),
        ("6,103,236,608", 6_103_236_608),
        ("6103236608 B", 6_103_236_608),
        (917504, 917_504),
    ],
)
def test_a_size_is_read_with_its_prefix(text, expected):
    assert parse_bytes(text) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a size"),
        ("GiB", "is not a size"),
        ("-3GiB", "is not a size"),
        ("1e9", "is not a size"),
        ("nan", "is not a size"),
        ("24 GiB now", "is not a size"),
        ("1,03 GiB", "is not a size"),
        ("24G", "can mean GB"),
        ("24m", "can mean"),
        ("24Gb", "reads as bits"),
        ("24Gib", "reads as bits"),
        ("24XiB", "not a unit"),
        ("5.68", "no unit"),
        ("9" * 40, "is not a size"),
        ("٣GiB", "is not a size"),
    ],
)
def test_nonsense_is_refused_with_a_reason(text, says):
    with pytest.raises(ValueError, match=says):
        parse_bytes(text)


def test_a_rounded_size_stands_for_a_range():
    assert bytes_behind("5.68 GiB") == (6_093_484_852, 6_104_222_269)
    assert bytes_behind("1000") == (1000, 1000)
    assert has_decimals("5.68 GiB") and not has_decimals("24GiB")


@given(st.integers(10_000_000, 10**14))
def test_the_bytes_that_printed_a_size_are_in_its_range(count):
    low, high = bytes_behind(f"{count / 2**30:.2f} GiB")
    assert low <= count <= high


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_a_value_error(text):
    try:
        assert parse_bytes(text) >= 0
    except ValueError as error:
        assert str(error)


def test_shares():
    assert parse_share("0.9") == parse_share("90%") == Decimal("0.9")
    assert parse_share("1") == 1
    for nonsense in ("0", "1.5", "-0.1", "110%", "nine", "", "nan", "1e-1"):
        with pytest.raises(ValueError, match="share"):
            parse_share(nonsense)


def test_counts():
    assert parse_count("8,192") == parse_count("8192") == 8192
    for nonsense in ("0", "-1", "8k", "1.5", "", "8,19"):
        with pytest.raises(ValueError, match="max_len"):
            parse_count(nonsense, "max_len")


def test_dtypes():
    assert [dtype_bytes(name) for name in ("float32", "bfloat16", "torch.float16", "FP8")] == [4, 2, 2, 1]
    with pytest.raises(ValueError, match="Known: float32"):
        dtype_bytes("float12")


def test_sizes_for_people():
    assert format_bytes(917_504) == "896.00 KiB"
    assert format_bytes(7_516_192_768) == "7.00 GiB"
    assert (format_bytes(1023), format_bytes(1024)) == ("1,023 B", "1.00 KiB")
    assert format_bytes(-2048) == "-2.00 KiB"
    assert format_bytes(5 * 2**40) == "5.00 TiB"
