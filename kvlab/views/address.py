"""The arithmetic of address translation, and the judgement of a learner's function for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Where a token lives: table entry `entry` names physical block `block`; `slot` is the offset in it."""

    entry: int
    block: int
    slot: int


@dataclass(frozen=True)
class Tensor:
    """The shape [num_layers, num_blocks, block_size, num_kv_heads, head_dim] of a cache tensor."""

    num_layers: int
    num_blocks: int
    block_size: int
    num_kv_heads: int
    head_dim: int

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        """[L, N, B, H, D]."""
        return (self.num_layers, self.num_blocks, self.block_size, self.num_kv_heads, self.head_dim)

    @property
    def strides(self) -> tuple[int, int, int, int, int]:
        """Elements to skip for one step along each dimension."""
        head = self.head_dim
        slot = self.num_kv_heads * head
        block = self.block_size * slot
        return (self.num_blocks * block, block, slot, head, 1)

    def element(self, layer: int, block: int, slot: int, head: int) -> int:
        """The number of the first element of one token's K (or V) of one head."""
        return sum(i * stride for i, stride in zip((layer, block, slot, head), self.strides, strict=False))


def locate(table: Sequence[int], block_size: int, position: int) -> Place:
    """The place of token `position`: table[position // block_size], slot position % block_size."""
    entry, slot = divmod(position, block_size)
    return Place(entry, table[entry], slot)


class Answer(NamedTuple):
    """What a learner's translate gave: block and slot (or None, None), whether right, and a sentence."""

    block: int | None
    slot: int | None
    right: bool
    sentence: str


def ask(translate: Callable[..., Any], table: Sequence[int], block_size: int, position: int) -> Answer:
    """Call translate(block_table, block_size, position) for a position in the table, and judge it."""
    true = locate(table, block_size, position)
    why = (
        f"the right place is block {true.block}, slot {true.slot}: {position} // {block_size} = {true.entry} "
        f"picks entry {true.entry}, {position} % {block_size} = {true.slot}"
    )
    try:
        result = translate(list(table), block_size, position)
    except Exception as raised:
        return Answer(None, None, False, f"your translate raised {_raised(raised)}; {why}.")
    pair = _pair(result)
    if pair is None:
        return Answer(
            None, None, False, f"your translate returned {shorten(result)}, not (block, slot); {why}."
        )
    if pair == (true.block, true.slot):
        return Answer(*pair, True, f"your translate says block {pair[0]}, slot {pair[1]}: right.")
    return Answer(*pair, False, f"your translate says block {pair[0]}, slot {pair[1]}; {why}.")


def ask_outside(translate: Callable[..., Any], table: Sequence[int], block_size: int, position: int) -> str:
    """One sentence on what translate does with a position that has no entry in the table."""
    try:
        result = translate(list(table), block_size, position)
    except IndexError:
        return "your translate raises IndexError, as it should"
    except Exception as raised:
        return f"your translate raised {_raised(raised)}; IndexError would say what is wrong"
    return (
        f"your translate returned {shorten(result)}; it should raise IndexError, "
        "or it reads somebody else's block"
    )


def _pair(result: Any) -> tuple[int, int] | None:
    if hasattr(result, "block") and hasattr(result, "offset"):
        result = (result.block, result.offset)
    try:
        block, slot = result
        return index(block), index(slot)
    except Exception:
        return None


def _raised(raised: Exception) -> str:
    message = shorten(raised, str)
    return f"{type(raised).__name__}: {message}" if message else type(raised).__name__


def shorten(value: Any, write: Callable[[Any], str] = repr) -> str:
    """A learner's value in at most 80 characters, whatever its own repr or str does."""
    try:
        text = " ".join(write(value).split())
    except Exception:
        return f"a {type(value).__name__} that cannot be printed"
    return text if len(text) <= 80 else text[:79] + "…"
