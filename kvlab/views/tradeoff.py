"""The block size trade-off: small blocks waste less, large ones need shorter tables and fewer fetches."""

from collections.abc import Callable, Sequence
from operator import index

import ipywidgets

from kvlab.units import parse_count, parse_share
from kvlab.views.picture import Picture
from kvlab.views.tradeoff_drawing import SIZES, draw_tradeoff, size_rows, tell_choice

_LENGTHS = (120, 480, 90, 2100, 760, 310)
_MOST_TYPED = 200  # lengths in the text field; all of them count until others are typed


class BlockSizeTradeoff(Picture):
    """Every block size for your own requests: what it leaves empty, and what its tables take.

    Type lengths, and how much waste you accept: the largest block size within it is ringed. What cannot be
    read is said in the figure.

    Args:
        lengths: tokens of each request, prompt and answer together; thousands are fine here.
        most_waste: the largest share of all slots held that may be empty, 0 to 1.
        sizes: the block sizes to compare.

    Raises:
        ValueError: no lengths, a length or a size below 1, or a share outside 0 to 1.
    """

    def __init__(
        self,
        lengths: Sequence[int] = _LENGTHS,
        most_waste: float = 0.05,
        *,
        sizes: Sequence[int] = SIZES,
    ):
        self._lengths = [index(length) for length in lengths]
        self._sizes, self._most = tuple(sizes), float(most_waste)
        _validate(self._lengths, self._sizes, self._most)
        self._problem: str | None = None
        self.rows = size_rows(self._lengths, self._sizes)
        short = ", ".join(map(str, self._lengths[:_MOST_TYPED]))
        self.typed = ipywidgets.Text(short, description="lengths", continuous_update=False)
        self.accepted = ipywidgets.Text(
            f"{self._most:.4g}", description="accepted waste", continuous_update=False
        )
        self.accepted.style.description_width = "initial"
        self.typed.layout.width, self.accepted.layout.width = "560px", "190px"
        self.typed.add_class("kvlab-typed")
        self.accepted.add_class("kvlab-accepted")
        super().__init__((ipywidgets.HBox([self.typed, self.accepted]),))
        self.typed.observe(lambda change: self._read_lengths(change["new"]), "value")
        self.accepted.observe(lambda change: self._read_waste(change["new"]), "value")
        self._redraw()

    def svg(self, *, uid: str | None = None, standalone: bool = False) -> str:
        """The picture as it is now."""
        count = len(self._lengths)
        return draw_tradeoff(
            self.rows, self._most, count, problem=self._problem, uid=uid, standalone=standalone
        )

    def words(self) -> str:
        """The choice in one line."""
        return tell_choice(self.rows, self._most, len(self._lengths))

    def _read_lengths(self, text: str) -> None:
        words = text.replace(",", " ").split()
        self._try(lambda: ([parse_count(word, "A length") for word in words], self._most))

    def _read_waste(self, text: str) -> None:
        self._try(lambda: (self._lengths, float(parse_share(text))))

    def _try(self, read: Callable[[], tuple[list[int], float]]) -> None:
        """Take over what was typed, or say what is wrong with it."""
        try:
            lengths, most = read()
            _validate(lengths, self._sizes, most)
        except ValueError as problem:
            self._problem = f"{problem} The picture still shows the last answer."
        else:
            self._lengths, self._most, self._problem = lengths, most, None
            self.rows = size_rows(lengths, self._sizes)
        self._redraw()

    def _redraw(self) -> None:
        self.picture.value = self.svg(uid=self._uid)


def _validate(lengths: Sequence[int], sizes: Sequence[int], most_waste: float) -> None:
    if not lengths:
        raise ValueError("No lengths: give the tokens of at least one request, such as 120, 480.")
    if min(lengths) < 1:
        raise ValueError(f"A request has at least 1 token, but a length of {min(lengths)} was given.")
    if not sizes or min(sizes) < 1:
        raise ValueError("Block sizes must be at least 1 token, and there must be one.")
    if not 0 <= most_waste <= 1:
        raise ValueError(f"The accepted waste is a share from 0 to 1, not {most_waste}.")
