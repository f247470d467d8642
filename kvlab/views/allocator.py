"""The allocator, step by step: pool, tables, free list and counts of any block manager."""

from collections.abc import Callable, Sequence
from typing import Any

from kvlab.block_manager import BlockManager
from kvlab.recording import Frame, Operation, record
from kvlab.views.allocator_drawing import Scene, draw_frame, tell
from kvlab.views.stepper import Stepper


class AllocatorStepper(Stepper):
    """Steps through a script of operations, drawn from what the manager really did.

    Args:
        script: text such as "append A 5; fork A C; append C; release A", a list of operations, or frames
            that were recorded already.
        manager: any object with the smallest manager's interface (a learner's own too), or a function
            without arguments that makes one; by default a `BlockManager` of 8 blocks of 4.
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
        self._scene = Scene(self.frames)
        super().__init__(len(self.frames), step=step)

    def draw(self, step: int, *, uid: str | None = None, standalone: bool = False) -> str:
        """The SVG of a frame."""
        return draw_frame(self._scene, self.frames, step, uid=uid, standalone=standalone)

    def tell(self, step: int) -> str:
        """The frame in one line."""
        return tell(self.frames, step)


def frames_of(script, manager) -> list[Frame]:
    """The frames as given, or recorded from a script on a manager, a factory or, by default, ours."""
    if not isinstance(script, str) and script and all(isinstance(entry, Frame) for entry in script):
        return list(script)
    if not script:
        raise ValueError("nothing to step through: give a script such as 'append A 5; release A', or frames.")
    if manager is None:
        manager = BlockManager(8, 4)
    elif isinstance(manager, type) or (callable(manager) and not hasattr(manager, "block_size")):
        manager = manager()
    return record(script, manager)
