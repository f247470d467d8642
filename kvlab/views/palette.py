"""Colours of the requests: Okabe-Ito fills, each with an ink that can be read on it.

Colour is never alone: every request also carries a short label, which the figures print beside its colour.
The seven fills repeat from the eighth request on; the labels still differ.
"""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

LIGHT_INK = "#fff"
DARK_INK = "#111"

# Okabe and Ito, "Color Universal Design" (2008), without black. Neighbours in this order differ most.
FILLS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#f0e442", "#d55e00")

_LABEL_LENGTH = 3


class Paint(NamedTuple):
    """How one request is drawn: fill and ink are CSS colours, label is at most three characters."""

    fill: str
    ink: str
    label: str


def luminance(colour: str) -> float:
    """Relative luminance of "#rgb" or "#rrggbb", 0 to 1 (WCAG 2.2)."""
    digits = colour.lstrip("#")
    if len(digits) == 3:
        digits = "".join(d * 2 for d in digits)
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two opaque colours, 1 to 21 (WCAG 2.2; text wants 4.5 or more)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def ink_on(fill: str) -> str:
    """The ink, light or dark, that reads better on a fill."""
    return max(LIGHT_INK, DARK_INK, key=lambda ink: contrast(fill, ink))


def paints(request_ids: Iterable[Hashable]) -> dict[Hashable, Paint]:
    """Give each request its colour and label.

    The names A to G always get their own colours, so that request A looks the same in every figure.
    Other names take the colours that are left, in order, and start again when all seven are used.
    """
    ids = list(dict.fromkeys(request_ids))
    chosen = {rid: FILLS["ABCDEFG".index(rid)] for rid in ids if _is_home_letter(rid)}
    rest = [rid for rid in ids if rid not in chosen]
    left = [fill for fill in FILLS if fill not in chosen.values()]
    for i, rid in enumerate(rest):
        chosen[rid] = left[i] if i < len(left) else FILLS[(i - len(left)) % len(FILLS)]
    labels = _labels(ids)
    return {rid: Paint(chosen[rid], ink_on(chosen[rid]), labels[rid]) for rid in ids}


def _is_home_letter(request_id) -> bool:
    return isinstance(request_id, str) and len(request_id) == 1 and request_id in "ABCDEFG"


def _is_short(name: str) -> bool:
    return 0 < len(name) <= _LABEL_LENGTH and name.isascii() and name.isprintable() and " " not in name


def _labels(ids: list) -> dict:
    """Short names as they are; a longer one becomes r and its place in the order, where that is free."""
    labels = {rid: str(rid) for rid in ids if _is_short(str(rid))}
    taken = set(labels.values())
    number = 0
    for rid in ids:
        if rid in labels:
            continue
        number += 1
        while f"r{number}" in taken:
            number += 1
        labels[rid] = f"r{number}"
    return labels
