"""The smallest block manager's data, without its operations: notebook 04 has the learner write those."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence


class Blocks:
    """Free list, block tables and lengths of a pool of `num_blocks` blocks of `block_size` slots.

    free: deque of the free blocks, next to be handed out first.
    tables: request id -> list of its physical blocks in logical order.
    lengths: request id -> how many tokens it holds.
    """

    def __init__(self, num_blocks: int, block_size: int, free_order: Sequence[int] | None = None):
        self.num_blocks, self.block_size = num_blocks, block_size
        order = range(num_blocks) if free_order is None else free_order
        if sorted(order) != list(range(num_blocks)):
            raise ValueError(
                f"free_order must name each block 0 to {num_blocks - 1} once, got {list(order)}."
            )
        self.free: deque[int] = deque(order)
        self.tables: dict[Hashable, list[int]] = {}
        self.lengths: dict[Hashable, int] = {}

    def block_table(self, request_id: Hashable) -> list[int]:
        return list(self._known(self.tables, request_id))

    def length(self, request_id: Hashable) -> int:
        return self._known(self.lengths, request_id)

    def free_order(self) -> list[int]:
        return list(self.free)

    def request_ids(self) -> list[Hashable]:
        return list(self.tables)

    @staticmethod
    def _known(of: dict, request_id: Hashable):
        if request_id not in of:
            raise KeyError(f"no request {request_id!r}; live requests: {list(of)}")
        return of[request_id]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(B={self.block_size}, free={list(self.free)}, "
            f"tables={self.tables}, lengths={self.lengths})"
        )


class SharedBlocks(Blocks):
    """`Blocks` whose blocks may be in several tables: notebook 07's data.

    counts: by block id, how many tables hold it; 0 for a free block.
    `grow(request_id)` is notebook 04's append_slot, the learner's own where it passed: right whenever the
    request's last block is nobody else's.
    """

    def __init__(self, num_blocks: int, block_size: int, free_order: Sequence[int] | None = None):
        super().__init__(num_blocks, block_size, free_order)
        self.counts: list[int] = [0] * num_blocks

    def grow(self, request_id: Hashable) -> tuple[int, int]:
        return _append_slot_of_04()(self, request_id)

    def ref_count(self, block: int) -> int:
        return self.counts[block]

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, counts={self.counts})"


def _append_slot_of_04() -> Callable:
    from kvlab.exercises.answers import stored_answer

    return stored_answer("04.manager")[0].append_slot


def manager_from(
    append_slot: Callable | None = None,
    release: Callable | None = None,
    append: Callable | None = None,
    check: Callable | None = None,
    fork: Callable | None = None,
    *,
    name: str = "MyManager",
) -> type[Blocks]:
    """A class with the given functions as its methods over `Blocks`; leave out what you have not written.

    With `fork` the class stands on `SharedBlocks`, which counts the holders of each block.
    """
    parts = {"append_slot": append_slot, "release": release, "append": append, "check": check, "fork": fork}
    parts = {method: function for method, function in parts.items() if function is not None}
    for method, function in parts.items():
        if not callable(function):
            raise TypeError(
                f"{method} must be a function with `self` as its first argument, got {function!r}."
            )
    base, more = (Blocks, {}) if fork is None else (SharedBlocks, {"grow": _append_slot_of_04()})
    doc = "A block manager made of your functions."
    return type(name, (base,), {**more, **parts, "parts": parts, "__doc__": doc})
