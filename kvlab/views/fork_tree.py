"""Who was forked from whom, as rows of a tree: every request under its parent."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from kvlab.recording import Frame
from kvlab.views.contents import request_ids


class TreeRow(NamedTuple):
    """One request's place in the tree: its parent (None: it began by itself) and how deep it is."""

    request_id: Hashable
    parent: Hashable | None
    depth: int


def fork_tree(frames: Sequence[Frame]) -> list[TreeRow]:
    """A row for each request of a recording, parents first and children in the order of their forks.

    A name that is forked again after its release keeps its first parent.
    """
    parents: dict[Hashable, Hashable] = {}
    for frame in frames:
        operation = frame.operation
        if operation is not None and operation.kind == "fork" and operation.other in frame.state.tables:
            parents.setdefault(operation.other, operation.request_id)
    ids = request_ids([frame.state for frame in frames])
    children: dict[Hashable, list[Hashable]] = {}
    for rid in ids:
        children.setdefault(parents.get(rid), []).append(rid)
    rows: list[TreeRow] = []
    placed: set[Hashable] = set()
    waiting = [TreeRow(rid, None, 0) for rid in reversed(ids) if rid not in parents]
    waiting = [*(TreeRow(rid, None, 0) for rid in reversed(ids) if rid in parents), *waiting]
    while waiting:  # what is still unplaced at the end hangs on itself, such as a name forked from its child
        row = waiting.pop()
        if row.request_id in placed:
            continue
        placed.add(row.request_id)
        rows.append(row)
        below = reversed(children.get(row.request_id, []))
        waiting += [TreeRow(rid, row.request_id, row.depth + 1) for rid in below if rid not in placed]
    return rows
