"""Address translation, position by position: the widget."""

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import ipywidgets

from kvlab.views.address import Answer, Tensor, ask, ask_outside, shorten
from kvlab.views.address_drawing import AddressView, draw_address, tell
from kvlab.views.stepper import Stepper


class AddressTranslation(Stepper):
    """From a token's position to its physical slot and its address in the cache tensor.

    Step through the positions or type one. With `translate`, the arrow goes where that function says, and
    where it is wrong the right slot is outlined beside it.

    Args:
        table: the request's block table, physical block ids in logical order.
        block_size: tokens a block.
        length: tokens of the request, at least 1 and at most len(table) * block_size.
        translate: a function (block_table, block_size, position) -> (block, slot) to draw and judge.
        num_blocks: blocks in the pool; by default 8, or as many as the table needs.
        num_layers, num_kv_heads, head_dim: the rest of the cache tensor's shape, for the address.
        request_id: the name of the request.
        position: the position to show first.

    Raises:
        ValueError: a table, size or length that cannot be.
    """

    def __init__(
        self,
        table: Sequence[int],
        block_size: int,
        length: int,
        *,
        translate: Callable[..., Any] | None = None,
        num_blocks: int | None = None,
        num_layers: int = 2,
        num_kv_heads: int = 2,
        head_dim: int = 8,
        request_id: str = "A",
        position: int = 0,
    ):
        table = tuple(index(block) for block in table)
        num_blocks = max(8, max(table, default=0) + 1) if num_blocks is None else num_blocks
        _validate(table, block_size, length, num_blocks)
        self._tensor = Tensor(num_layers, num_blocks, block_size, num_kv_heads, head_dim)
        if min(self._tensor.shape) < 1:
            raise ValueError(
                f"every size of the cache tensor must be at least 1, got {list(self._tensor.shape)}."
            )
        self._table, self._length, self._translate = table, length, translate
        self._request_id = request_id
        self._answers: dict[int, Answer] = {}
        self._problem: str | None = None
        self.typed = ipywidgets.Text(str(position), description="position", continuous_update=False)
        self.layer = ipywidgets.Dropdown(options=range(num_layers), value=0, description="layer")
        self.head = ipywidgets.Dropdown(options=range(num_kv_heads), value=0, description="KV head")
        controls = (self.typed, self.layer, self.head)
        for control, name in zip(controls, ("typed", "layer", "head"), strict=True):
            control.layout.width = "170px"
            control.add_class(f"kvlab-{name}")
        super().__init__(length, step=position, slider_name="position", extra=(ipywidgets.HBox(controls),))
        self.typed.observe(lambda change: self._read(change["new"]), "value")
        for control in (self.layer, self.head):
            control.observe(lambda _: self.redraw(), "value")

    def draw(self, step: int, *, uid: str | None = None, standalone: bool = False) -> str:
        """The SVG of a position."""
        return draw_address(self._view(step), uid=uid, standalone=standalone)

    def tell(self, step: int) -> str:
        """The translation of a position in one line."""
        return tell(self._view(step))

    def go(self, step: int) -> None:
        """Show a position. Past either end the picture stays at that end and the line below says so."""
        self._problem = None
        super().go(step)
        self.typed.value = str(self.step)

    def _view(self, position: int) -> AddressView:
        if self._translate is not None and position not in self._answers:
            self._answers[position] = ask(self._translate, self._table, self._tensor.block_size, position)
        return AddressView(
            self._table,
            self._length,
            self._tensor,
            self._request_id,
            position,
            self.layer.value,
            self.head.value,
            self._answers.get(position),
            self._problem,
        )

    def _read(self, text: str) -> None:
        """Go to the position that was typed; what is no position is said, and the picture stays."""
        try:
            position = int(text)
        except ValueError:
            self._problem = (
                f"{shorten(text)} is no position: type a whole number from 0 to {self._length - 1}."
            )
        else:
            if position == self.step and self._problem is None:
                return
            if 0 <= position < self._length:
                self.go(position)
                return
            self._problem = self._outside(position)
        self.redraw()

    def _outside(self, position: int) -> str:
        last, room = self._length - 1, len(self._table) * self._tensor.block_size
        if 0 <= position < room:
            block, slot = self._table[position // self._tensor.block_size], position % self._tensor.block_size
            return (
                f"Position {position} is past the end: {self._length} tokens have positions 0 to {last}. "
                f"Its slot (block {block}, slot {slot}) is reserved, but no token is in it yet."
            )
        where = "before the first token" if position < 0 else "past the end of the table"
        said = f"Position {position} is {where}: {self._request_id} has positions 0 to {last}"
        if self._translate is None:
            return f"{said}. An IndexError is right here; reading on would find somebody else's block."
        return f"{said}; {ask_outside(self._translate, self._table, self._tensor.block_size, position)}."


def _validate(table: tuple[int, ...], block_size: int, length: int, num_blocks: int) -> None:
    if block_size < 1:
        raise ValueError(f"block_size must be at least 1 token, got {block_size}.")
    if not 1 <= length <= len(table) * block_size:
        raise ValueError(
            f"length {length} does not fit: a table of {len(table)} blocks of {block_size} holds 1 to "
            f"{len(table) * block_size} tokens."
        )
    wrong = [block for block in table if not 0 <= block < num_blocks]
    if wrong:
        raise ValueError(
            f"table {list(table)} names block {wrong[0]}, but the pool has blocks 0 to {num_blocks - 1}."
        )
