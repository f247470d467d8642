"""Fragmentation, step by step: one script on contiguous memories with holes and on a paged one."""

from __future__ import annotations

from collections.abc import Sequence

from kvlab.allocator import Allocator
from kvlab.slot_script import parse
from kvlab.views.fragmentation_drawing import draw_strips
from kvlab.views.fragmentation_frames import record
from kvlab.views.stepper import Stepper


class FragmentationStepper(Stepper):
    """Steps through a script on one or more allocators, drawn one above the other.

    Args:
        script: text such as "admit A 4; append A 2; release A". `admit A 4 3`: 4 tokens now, 3 to come.
        allocators: fresh ones, of at most 32 slots.
        step: the step to show first.

    Raises:
        ValueError: a script that cannot be read.
        KeyError: an operation on a request that was never admitted.
    """

    def __init__(self, script: str, allocators: Sequence[Allocator], *, step: int = 0):
        self.frames = record(parse(script), allocators)
        super().__init__(len(self.frames), step=step)

    def draw(self, step: int, *, uid: str | None = None, standalone: bool = False) -> str:
        """The SVG of a frame."""
        return draw_strips(
            self.frames[step][1],
            self._people(),
            self.tell(step),
            step=step,
            uid=uid,
            standalone=standalone,
        )

    def tell(self, step: int) -> str:
        """The frame in one line."""
        operation, strips = self.frames[step]
        if operation is None:
            return "Before the first step: all slots are free."
        failed = [f"{strip.name}: {strip.problem}" for strip in strips if strip.problem]
        said = (
            "; ".join(failed) if failed else "fits" if operation.kind != "release" else "its slots are free"
        )
        return f"{operation}: {said}."

    def _people(self) -> list[str]:
        return [step.request_id for step, _ in self.frames if step is not None]
