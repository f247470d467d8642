"""Whose blocks are where, as one picture of a State that can be redrawn while a model talks."""

from collections.abc import Mapping

from kvlab.state import State
from kvlab.views.map_drawing import draw_map, tell_map
from kvlab.views.picture import Picture


class BlockMap(Picture):
    """The physical blocks of a state: their holders, and what is free.

    Args:
        state: what to draw, from `kvlab.snapshot(manager, request_ids)`.
        cached: free blocks that still keep content, and in how many of their slots.
    """

    def __init__(self, state: State, *, cached: Mapping[int, int] | None = None):
        super().__init__()
        self.show(state, cached=cached)

    def show(self, state: State, *, cached: Mapping[int, int] | None = None) -> None:
        """Draw another state in the same place."""
        self._state, self._cached = state, dict(cached or {})
        self.picture.value = self.svg(uid=self._uid)

    def svg(self, *, uid: str | None = None, standalone: bool = False) -> str:
        """The SVG of the state."""
        return draw_map(self._state, cached=self._cached, uid=uid, standalone=standalone)

    def words(self) -> str:
        """The state in one line."""
        return tell_map(self._state)
