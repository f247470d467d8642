"""Which program of a decode kernel reads which blocks: the widget."""

from collections.abc import Callable, Hashable, Mapping, Sequence

from kvlab.views.program_map_drawing import draw_program_map
from kvlab.views.program_map_steps import Launch, tell_program
from kvlab.views.stepper import Stepper


class ProgramMap(Stepper):
    """Steps through the programs of one launch and shows what each of them reads.

    Args:
        tables: request id -> its block ids, in logical order.
        lengths: request id -> how many tokens it holds.
        block_size, num_kv_heads: of the cache.
        num_splits: parts that each walk is cut into.
        tile: positions that a program takes at once; by default a block's.
        num_blocks: of the pool; by default up to the last block in a table.
        bounds: (length, split, num_splits, tile) -> (begin, end), to draw another rule than the kernel's.
        step: 0 shows all programs, step i the i-th.

    Raises:
        ValueError: a length that its table does not hold, or a size below 1.
    """

    def __init__(
        self,
        tables: Mapping[Hashable, Sequence[int]],
        lengths: Mapping[Hashable, int],
        block_size: int,
        *,
        num_kv_heads: int = 2,
        num_splits: int = 1,
        tile: int | None = None,
        num_blocks: int | None = None,
        bounds: Callable[[int, int, int, int], tuple[int, int]] | None = None,
        step: int = 0,
    ):
        tile = block_size if tile is None else tile
        self._launch = Launch(dict(tables), dict(lengths), block_size, num_kv_heads, num_splits, tile, bounds)
        held = [block for table in tables.values() for block in table]
        self._num_blocks = max([-1, *held]) + 1 if num_blocks is None else num_blocks
        super().__init__(len(self._launch.programs) + 1, step=step, slider_name="program")

    def draw(self, step: int, *, uid: str | None = None, standalone: bool = False) -> str:
        """The SVG of a step."""
        return draw_program_map(self._launch, self._num_blocks, step, uid=uid, standalone=standalone)

    def tell(self, step: int) -> str:
        """The step in one line."""
        return tell_program(self._launch, step)
