"""The record that a sentinel writes into a slot: who owns it, in digits that every KV dtype holds exactly.

float8_e4m3fn holds the whole numbers 0 to 15 exactly, and so do the wider dtypes. So a record is a row of
base-16 digits, one a lane, most significant first:

    lane  0      1..5             6..10     11..12  13..14   15
          1 = K  request number   position  layer   KV head  check: the sum of the others modulo 16
          2 = V

A slot of head_dim 64 holds it four times over; every copy has to be right. Zeros are no record, so a fresh
cache reads as "never written".
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

BASE = 16
WIDTHS = {"kind": 1, "request": 5, "position": 5, "layer": 2, "head": 2, "check": 1}
RECORD_LANES = sum(WIDTHS.values())
KINDS = "KV"
LIMIT = {name: BASE**width for name, width in WIDTHS.items()}
_SHIFTS = 4 * np.arange(max(WIDTHS.values()))[::-1]
_END = dict(zip(WIDTHS, np.cumsum(list(WIDTHS.values())).tolist(), strict=True))


def encode(
    requests: np.ndarray, positions: np.ndarray, layer: int, num_kv_heads: int, head_dim: int
) -> np.ndarray:
    """Lane values of the given tokens' slots in one layer, K and V: uint8 [2, T, num_kv_heads, head_dim].

    requests, positions: integers [T].
    """
    token = np.zeros((len(requests), RECORD_LANES), np.uint8)  # [T, R]
    _put(token, "request", requests)
    _put(token, "position", positions)
    place = _place(layer, num_kv_heads)  # [2, 1, Hkv, R]
    record = token[:, None] + place  # [2, T, Hkv, R]
    record[..., -1] = (token.sum(-1)[:, None] + place.sum(-1)) % BASE
    if head_dim == RECORD_LANES:
        return record
    copies = -(-head_dim // RECORD_LANES)
    return np.tile(record, copies)[..., :head_dim]  # [2, T, Hkv, D]


@lru_cache(maxsize=256)
def _place(layer: int, num_kv_heads: int) -> np.ndarray:
    """The digits that do not depend on the token: [2, 1, num_kv_heads, R]."""
    place = np.zeros((len(KINDS), 1, num_kv_heads, RECORD_LANES), np.uint8)
    _put(place, "kind", np.arange(1, 1 + len(KINDS))[:, None, None])
    _put(place, "layer", np.array(layer))
    _put(place, "head", np.arange(num_kv_heads))
    return place


def _put(record: np.ndarray, field: str, values: np.ndarray) -> None:
    """Write the values' digits into the field's lanes; values: integers [...] for record [..., R]."""
    end, width = _END[field], WIDTHS[field]
    record[..., end - width : end] = values[..., None] >> _SHIFTS[-width:] & (BASE - 1)


def decode(lanes: np.ndarray) -> dict[str, np.ndarray]:
    """The fields of each slot's record, from lane values [M, D]: integers [M] by field name.

    Two more entries, bool [M]: "empty" (all lanes are 0) and "whole" (every copy of the record agrees, each
    lane is a digit and the check digit is right). Fields of slots that are not whole mean nothing.
    """
    digits = np.where((lanes >= 0) & (lanes < BASE) & (lanes == np.floor(lanes)), lanes, BASE).astype(
        np.int64
    )
    record = digits[:, :RECORD_LANES]  # [M, R]
    copies = -(-lanes.shape[1] // RECORD_LANES)
    agree = (np.tile(record, copies)[:, : lanes.shape[1]] == digits).all(1) & (record < BASE).all(1)
    checked = record[:, :-1].sum(1) % BASE == record[:, -1]
    fields = {}
    for name, width in WIDTHS.items():
        weights = BASE ** np.arange(width)[::-1]
        fields[name] = record[:, _END[name] - width : _END[name]] @ weights
    fields["empty"] = (lanes == 0).all(1)
    fields["whole"] = agree & checked & np.isin(fields["kind"], (1, 2))
    return fields
