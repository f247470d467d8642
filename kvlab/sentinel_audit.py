"""The audit of one request: walk its block table, compare every slot with its record, say what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from kvlab.kv_cache import PagedKVCache, as_bits
from kvlab.sentinel_record import KINDS, decode, encode

# Tokens compared at a time; bounds the memory that an audit takes.
CHUNK = 16_384
# Stands for the block that a table is too short to name; -1 may really stand in a table.
NO_BLOCK = np.iinfo(np.int64).min


class Mismatch(NamedTuple):
    """One slot of one layer and head, K or V, that does not hold what the request's table says.

    request_id, position: whose table led there, and for which token. layer, head: of the KV; kind: K or V.
    expected, found: as text, such as "A[9]": token 9 of request A.
    state: "other" (somebody's live content, or that of another layer, head or kind), "stale" (left by a
    request that was released, perhaps an earlier one of the same id), "never written", "garbled" (no whole
    record), or "no slot" (the table names no block of the cache there: offset, layer, head, kind are None).
    """

    block: int | None
    offset: int | None
    layer: int | None
    head: int | None
    kind: str | None
    request_id: Hashable
    position: int
    expected: str
    found: str
    state: str

    def __str__(self) -> str:
        if self.state == "no slot":
            return f"{self.request_id}[{self.position}] has no slot: {self.found}"
        # A fork's table leads to tokens that its ancestor wrote.
        own = self.expected == f"{self.request_id}[{self.position}]"
        place = f"block {self.block} slot {self.offset}, layer {self.layer} head {self.head} {self.kind}"
        via = "" if own else f" in {self.request_id}'s table"
        note = "" if self.state == "other" else f" ({self.state})"
        return f"{place}: expected {self.expected}{via}, found {self.found}{note}"


class Names(NamedTuple):
    """ids: the id of each request number; live: gives the set of numbers whose content is still held."""

    ids: Sequence[Hashable]
    live: Callable[[], set[int]]


class Walk(NamedTuple):
    """The tokens of one request in order and where its table says that they are; all arrays are [M].

    numbers: the number of the request that wrote each token (a fork's first tokens are its ancestor's).
    """

    request_id: Hashable
    positions: np.ndarray
    blocks: np.ndarray
    offsets: np.ndarray
    numbers: np.ndarray

    def take(self, rows: np.ndarray) -> Walk:
        return Walk(self.request_id, *(column[rows] for column in self[1:]))


def walk_table(request_id: Hashable, table: Sequence[int], block_size: int, numbers: np.ndarray) -> Walk:
    """Every token of a request with its slot; the block is NO_BLOCK where the table is too short."""
    positions = np.arange(len(numbers))
    logical = np.minimum(positions // block_size, len(table))
    blocks = np.array([*table, NO_BLOCK], np.int64)[logical]
    return Walk(request_id, positions, blocks, positions % block_size, numbers)


def stored_records(
    cache: PagedKVCache, numbers: np.ndarray, positions: np.ndarray, layer: int
) -> torch.Tensor:
    """The tokens' records, K and V, as the cache stores them: [2, M, num_kv_heads, head_dim]."""
    digits = encode(numbers, positions, layer, cache.num_kv_heads, cache.head_dim)
    return torch.from_numpy(digits).to(cache.k.device, cache.k.dtype)


def audit_walk(cache: PagedKVCache, walk: Walk, names: Names) -> list[Mismatch]:
    """All mismatches of one request, by position, layer, head, K before V."""
    has_slot = (walk.blocks >= 0) & (walk.blocks < cache.k.shape[1])
    mismatches = [_no_slot(walk.take(row), names, cache.k.shape[1]) for row in np.flatnonzero(~has_slot)]
    rows = np.flatnonzero(has_slot)
    for begin in range(0, len(rows), CHUNK):
        mismatches.extend(_compare(cache, walk.take(rows[begin : begin + CHUNK]), names))
    return sorted(mismatches, key=lambda m: (m.position, m.layer, m.head, m.kind))


def _compare(cache: PagedKVCache, walk: Walk, names: Names) -> Iterator[Mismatch]:
    blocks = torch.from_numpy(walk.blocks).to(cache.k.device)
    offsets = torch.from_numpy(walk.offsets).to(cache.k.device)
    for layer in range(cache.k.shape[0]):
        records = stored_records(cache, walk.numbers, walk.positions, layer)  # [2, M, Hkv, D]
        for kind, whole, wanted in zip(KINDS, (cache.k, cache.v), records, strict=True):
            lanes = whole[layer][blocks, offsets]  # [M, Hkv, D]
            wrong = (as_bits(lanes) != as_bits(wanted)).any(-1).cpu().numpy()  # [M, Hkv]
            if wrong.any():
                rows, heads = np.nonzero(wrong)
                content = lanes.float().cpu().numpy()[rows, heads]  # [number wrong, D]
                yield from _describe(walk.take(rows), layer, heads, kind, decode(content), names)


def _describe(
    walk: Walk, layer: int, heads: np.ndarray, kind: str, fields: dict[str, np.ndarray], names: Names
) -> Iterator[Mismatch]:
    for row, head in enumerate(heads.tolist()):
        number, position = int(walk.numbers[row]), int(walk.positions[row])
        found, state = _content({name: int(column[row]) for name, column in fields.items()}, names)
        there = (int(fields["layer"][row]), int(fields["head"][row]), int(fields["kind"][row]))
        if state in ("other", "stale") and there != (layer, head, KINDS.index(kind) + 1):
            found += f" of layer {there[0]} head {there[1]} {KINDS[there[2] - 1]}"
        yield Mismatch(
            block=int(walk.blocks[row]),
            offset=int(walk.offsets[row]),
            layer=layer,
            head=head,
            kind=kind,
            request_id=walk.request_id,
            position=position,
            expected=f"{names.ids[number]}[{position}]",
            found=found,
            state=state,
        )


def _content(record: dict[str, int], names: Names) -> tuple[str, str]:
    """What a wrong slot holds, as text, and its state."""
    if record["empty"]:
        return "nothing", "never written"
    if not record["whole"] or not 0 < record["request"] < len(names.ids):
        return "no whole record", "garbled"
    text = f"{names.ids[record['request']]}[{record['position']}]"
    return text, "other" if record["request"] in names.live() else "stale"


def _no_slot(token: Walk, names: Names, num_blocks: int) -> Mismatch:
    block, position = int(token.blocks), int(token.positions)
    if block == NO_BLOCK:
        block, found = None, "the table has no block for it"
    else:
        found = f"the table names block {block}, the cache has blocks 0 to {num_blocks - 1}"
    return Mismatch(
        block=block,
        offset=None,
        layer=None,
        head=None,
        kind=None,
        request_id=token.request_id,
        position=position,
        expected=f"{names.ids[int(token.numbers)]}[{position}]",
        found=found,
        state="no slot",
    )
