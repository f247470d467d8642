"""Sharing, step by step: forks, copy-on-write and beams on the block tables of any block manager."""

from collections.abc import Callable, Sequence
from typing import Any

from kvlab.block_manager import BlockManager
from kvlab.recording import Frame, Operation, record
from kvlab.views.allocator import frames_of
from kvlab.views.beam_steps import BeamTree, RecordedStep, beam_script, retell
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
        tree: the beams to draw above the tables; see `of_beams`.

    Raises:
        ValueError: a script that cannot be read, or no frames at all.
    """

    def __init__(
        self,
        script: str | Sequence[Operation] | Sequence[Frame],
        manager: Any | Callable[[], Any] | None = None,
        *,
        step: int = 0,
        tree: BeamTree | None = None,
    ):
        self.frames = frames_of(script, manager)
        self._scene = SharingScene(self.frames, tree)
        super().__init__(len(self.frames), step=step)

    @classmethod
    def of_beams(
        cls,
        steps: Sequence[RecordedStep],
        prompt_length: int,
        manager: Any | Callable[[], Any] | None = None,
        *,
        text: Callable[[int], str] = str,
        step: int = 0,
    ) -> "SharingStepper":
        """A recorded beam search, its moves carried out on a manager's tables, with the tree of its tokens.

        Args:
            steps: `BeamSearch.steps`.
            prompt_length: tokens of the prompt.
            manager: as above; by default a `BlockManager` of 64 blocks of 16.
            text: token id -> its text, such as `lambda i: tokenizer.token_bytes(i).decode()`.
        """
        if manager is None:
            manager = BlockManager(64, 16)
        elif not hasattr(manager, "block_size") or isinstance(manager, type):
            manager = manager()
        script, shown = beam_script(steps, prompt_length, batched=hasattr(manager, "reserve"))
        frames = [retell(frame) for frame in record(script, manager)]
        return cls(frames, step=step, tree=BeamTree(steps, shown, text))

    def draw(self, step: int, *, uid: str | None = None, standalone: bool = False) -> str:
        """The SVG of a frame."""
        return draw_sharing(self._scene, self.frames, step, uid=uid, standalone=standalone)

    def tell(self, step: int) -> str:
        """The frame in one line."""
        return tell_sharing(self._scene, self.frames, step)
