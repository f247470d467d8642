"""Layer groups, step by step: full, windowed and linear layers in one pool of blocks."""

from collections.abc import Callable, Sequence
from typing import Any

from kvlab.hybrid_manager import HybridManager
from kvlab.script import Operation, parse_script
from kvlab.views.group_drawing import GroupScene, draw_groups, tell_groups
from kvlab.views.group_steps import record_groups
from kvlab.views.stepper import Stepper


class LayerGroups(Stepper):
    """Steps through a script on groups of layers: a table a group, and all of them take from one pool.

    Args:
        script: text such as "append A 8; append A 4; append B 6; release A", or a list of operations.
        manager: a `HybridManager`, or a function without arguments that makes one; by default 16 blocks
            with a full group and one with a window of 8, both of blocks of 4.
        step: the step to show first.

    Raises:
        ValueError: a script that cannot be read, is empty, or does more than append and release.
    """

    def __init__(
        self,
        script: str | Sequence[Operation],
        manager: Any | Callable[[], Any] | None = None,
        *,
        step: int = 0,
    ):
        operations = parse_script(script) if isinstance(script, str) else list(script)
        if not operations:
            raise ValueError("nothing to step through: give a script such as 'append A 8; release A'.")
        odd = [operation.kind for operation in operations if operation.kind not in ("append", "release")]
        if odd:
            raise ValueError(f"this figure knows append and release, not {odd[0]}.")
        if manager is None:
            manager = HybridManager(16, [("full", 4), ("sliding", 4, 8)])
        elif callable(manager):
            manager = manager()
        self.frames = record_groups(operations, manager)
        self._scene = GroupScene(self.frames, manager.groups, manager.num_blocks)
        super().__init__(len(self.frames), step=step)

    def draw(self, step: int, *, uid: str | None = None, standalone: bool = False) -> str:
        """The SVG of a frame."""
        return draw_groups(self._scene, self.frames, step, uid=uid, standalone=standalone)

    def tell(self, step: int) -> str:
        """The frame in one line."""
        return tell_groups(self.frames, step)
