"""Sharing, step by step: forks, copy-on-write and beams on the block tables of any block manager."""

from collections.abc import Callable, Sequence
from typing import Any

from kvlab.recording import Frame, Operation
from kvlab.views.allocator import frames_of
from kvlab.views.sharing_drawing import SharingScene, draw_sharing, tell_sharing
from kvlab.views.stepper import Stepper


class SharingStepper(Stepper):
    """Steps through forks and what they share, drawn from what the manager really did.

    A row for each request, under the one that it was forked from. Every block is drawn once; tables that
    share it point to it. A copy is an arrow with its number of slots.

    Args:
        script: text such as "append A 6; fork A C; append C; append A", a list of operations, or frames that
            were recorded already.
        manager: any object with the smallest manager's interface and `fork` (a learner's own too), or a
            function without arguments that makes one; by default a `BlockManager` of 8 blocks of 4.
        step: the step to show first.

    Raises:
        ValueError: a script that cannot be read, or no frames at all.
    """

    def __init__(
        self,
        script: str | Sequence[Operation] | Sequence[Frame],
        manager: Any | Callable[[], Any] | None = None,
        *,
        step: int = 0,
    ):
        self.frames = frames_of(script, manager)
        self._scene = SharingScene(self.frames)
        super().__init__(len(self.frames), step=step)

    def draw(self, step: int, *, uid: str | None = None, standalone: bool = False) -> str:
        """The SVG of a frame."""
        return draw_sharing(self._scene, self.frames, step, uid=uid, standalone=standalone)

    def tell(self, step: int) -> str:
        """The frame in one line."""
        return tell_sharing(self._scene, self.frames, step)
