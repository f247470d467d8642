"""Reading and writing sizes: bytes with binary or decimal prefixes, shares, token counts, KV dtypes.

1 KiB is 1024 bytes and 1 kB is 1000: a graphics card's "24 GB" and an engine's "5.68 GiB" differ by
7 %, which is more than most of the waste that this course is about. So the prefix is always kept.
"""

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_NUMBER = re.compile(
    r"[0-9]{1,15}(?:\.[0-9]{1,12})?|[0-9]{1,3}(?:,[0-9]{3}){1,4}(?:\.[0-9]{1,12})?", re.ASCII
)
_SIZE = re.compile(rf"({_NUMBER.pattern})\s*([A-Za-z]*)", re.ASCII)
_BYTES_OF_DTYPE = {
    **dict.fromkeys(("float32", "fp32", "float"), 4),
    **dict.fromkeys(("float16", "fp16", "half", "bfloat16", "bf16"), 2),
    **dict.fromkeys(("fp8", "fp8_e4m3", "fp8_e5m2", "float8_e4m3fn", "float8_e5m2", "int8"), 1),
}


def dtype_bytes(name: object) -> int:
    """Bytes of one number of a dtype: "float16" -> 2. A torch dtype works too (its name is read).

    Raises ValueError that lists the known names.
    """
    key = str(name).strip().lower().removeprefix("torch.")
    if key not in _BYTES_OF_DTYPE:
        raise ValueError(f"{name!r} is not a KV dtype known here. Known: {', '.join(_BYTES_OF_DTYPE)}.")
    return _BYTES_OF_DTYPE[key]


def _size(text: object) -> tuple[Decimal, Decimal, int]:
    """(number, bytes of its unit, decimals written) of a text such as "5.68 GiB"."""
    shown = str(text).strip()
    match = _SIZE.fullmatch(shown)
    if not match:
        raise ValueError(
            f"{shown[:60]!r} is not a size. Write a number and a unit, for example 24GiB, 24GB or 6103236608."
        )
    number, unit = match.groups()
    scale = _unit_bytes(unit, shown)
    if not unit and "." in number:
        raise ValueError(f"{shown!r} has no unit: half a byte does not exist. Did you mean {shown}GiB?")
    decimals = len(number.partition(".")[2])
    return Decimal(number.replace(",", "")), Decimal(scale), decimals


def _unit_bytes(unit: str, shown: str) -> int:
    if unit in ("", "B", "byte", "bytes", "b"):
        return 1
    lower = unit.lower()
    for suffix, base in (("ib", 1024), ("b", 1000)):
        prefix = lower.removesuffix(suffix)
        if prefix != lower and prefix in _POWERS and (prefix or base == 1000):
            if unit.endswith("b") and unit != lower:
                raise ValueError(f"{shown!r} reads as bits ({unit}). Write {unit[:-1]}B for bytes.")
            return base ** _POWERS[prefix]
    if lower in _POWERS:
        raise ValueError(
            f"{shown!r} can mean {unit}B (powers of 1000) or {unit}iB (powers of 1024): write which."
        )
    raise ValueError(
        f"{unit!r} in {shown!r} is not a unit of size. Use B, kB, MB, GB, TB or KiB, MiB, GiB, TiB."
    )


def parse_bytes(text: object) -> int:
    """Bytes in a text: "24GiB" -> 25,769,803,776; "24GB" -> 24,000,000,000; a bare number is bytes.

    A fraction of a byte is dropped. Raises ValueError for anything that is not a size, and for "24G",
    which does not say whether a thousand or 1024 is meant.
    """
    number, scale, _ = _size(text)
    return int(number * scale)


def bytes_behind(text: object) -> tuple[int, int]:
    """The smallest and the largest byte count that prints as this text: "5.68 GiB" was rounded.

    A number with d decimals stands for everything within half of 10**-d units: for "5.68 GiB" that is
    6,093,484,852 to 6,104,222,269 bytes, a range of 10 MiB.
    """
    number, scale, decimals = _size(text)
    if scale == 1:
        return int(number), int(number)
    half = Decimal(5).scaleb(-decimals - 1)
    low = max(Decimal(0), number - half) * scale
    high = (number + half) * scale
    return int(low.to_integral_value(ROUND_CEILING)), int(high.to_integral_value(ROUND_FLOOR))


def has_decimals(text: object) -> bool:
    """True when a size was written with decimals, so that it probably stands for a rounded figure."""
    return _size(text)[2] > 0


def parse_share(text: object) -> Decimal:
    """A share of the whole, above 0 and at most 1: "0.9" or "90%"."""
    shown = str(text).strip()
    percent = shown.endswith("%")
    digits = shown.removesuffix("%").strip()
    if not re.fullmatch(r"[0-9]{0,4}\.?[0-9]{1,12}", digits, re.ASCII):
        raise ValueError(f"{shown[:60]!r} is not a share. Write a number such as 0.9 or 90%.")
    share = Decimal(digits) / (100 if percent else 1)
    if not 0 < share <= 1:
        raise ValueError(f"A share must be above 0 and at most 1, but {shown!r} was given.")
    return share


def parse_count(text: object, what: str = "count") -> int:
    """A whole number of at least 1, with or without thousands separators: "8,192" -> 8192."""
    shown = str(text).strip()
    if not _NUMBER.fullmatch(shown) or "." in shown:
        raise ValueError(f"{what} must be a whole number of at least 1, but {shown[:60]!r} was given.")
    number = int(shown.replace(",", ""))
    if number < 1:
        raise ValueError(f"{what} must be at least 1, but {shown!r} was given.")
    return number


def format_bytes(count: int | float) -> str:
    """A size for people, in binary units: 917504 -> "896.00 KiB"; below 1 KiB in whole bytes."""
    sign, size = ("-" if count < 0 else ""), abs(count)
    if size < 1024:
        return f"{sign}{size:,.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024:
            return f"{sign}{size:,.2f} {unit}"
    return f"{sign}{size / 1024:,.2f} TiB"
