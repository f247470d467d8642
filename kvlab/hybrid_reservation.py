"""The blocks of one step in every group of layers: committed together or given back together."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING

from kvlab.block_table import Growth
from kvlab.reservation import Reservation

if TYPE_CHECKING:
    from kvlab.hybrid_manager import HybridManager


class HybridReservation(Mapping[Hashable, list[Growth]]):
    """The blocks of one step in all groups: request id -> one `Growth` a group (empty for a kept state)."""

    def __init__(
        self,
        manager: HybridManager,
        counts: dict[Hashable, int],
        parts: list[Reservation],
        free_before: list[int],
    ):
        self._manager, self._tokens, self._parts = manager, counts, parts
        self._free_before = free_before
        manager._open |= counts.keys()

    def __getitem__(self, request_id: Hashable) -> list[Growth]:
        if request_id not in self._tokens:
            raise KeyError(request_id)
        return [part.get(request_id, Growth([], [])) for part in self._parts]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._tokens)

    def __len__(self) -> int:
        return len(self._tokens)

    def __enter__(self) -> HybridReservation:
        return self

    def __exit__(self, exception_type: type | None, *_: object) -> None:
        if exception_type is None:
            self.commit()
        else:
            self.roll_back()

    def commit(self) -> None:
        """The KV is written: add the tokens to the lengths."""
        lengths = self._manager._lengths
        for part in self._parts:
            part.commit()
        for request_id, count in self._tokens.items():
            lengths[request_id] = lengths.get(request_id, 0) + count
        self._manager._open -= self._tokens.keys()

    def roll_back(self) -> None:
        """Give the new blocks back, in the order they had. What the windows gave back stays free."""
        for part in reversed(self._parts):
            part.roll_back()
        self._manager._pool.restore_order(self._free_before)
        self._manager._open -= self._tokens.keys()
