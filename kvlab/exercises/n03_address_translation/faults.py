"""Three one-line faults of address translation to choose from, and what an audit says of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ipywidgets

from kvlab.exercises.telling import with_code


class Fault(NamedTuple):
    """A wrong line in place of a right one, and a translate that has it."""

    right: str
    wrong: str
    symptom: str
    translate: Callable[[list[int], int, int], tuple[int, int]]


def wrong_quotient(block_table: list[int], block_size: int, position: int) -> tuple[int, int]:
    return block_table[(position - 1) // block_size], position % block_size


def wrong_remainder(block_table: list[int], block_size: int, position: int) -> tuple[int, int]:
    return block_table[position // block_size], (position + 1) % block_size


def early_length(block_table: list[int], block_size: int, position: int) -> tuple[int, int]:
    length = position + 1  # committed already, then taken for the position
    padded = [*block_table, 0]  # a kernel does not stop at the end of the row: it reads the padding
    return padded[length // block_size], length % block_size


FAULTS = {
    "wrong //": Fault(
        "block_table[position // B]",
        "block_table[(position - 1) // B]",
        "the first token of each new block overwrites the first token of the block before it",
        wrong_quotient,
    ),
    "wrong %": Fault(
        "position % B",
        "(position + 1) % B",
        "tokens are in the right block, but each one in its neighbour's slot",
        wrong_remainder,
    ),
    "length too early": Fault(
        "slot of `length`, then `length += 1`",
        "`length += 1`, then slot of `length`",
        "every token sits one slot too far, and the last of a block reads past its row of the table",
        early_length,
    ),
}


class FaultChooser(ipywidgets.VBox):
    """Buttons for the faults above the audit of each.

    Args:
        drive: a function that writes sentinels through a translate and returns a `SentinelAudit`.
        fault: which one to show first, a key of FAULTS.

    Raises:
        ValueError: there is no such fault.
    """

    def __init__(self, drive: Callable[[Callable], Any], fault: str = "wrong //"):
        if fault not in FAULTS:
            raise ValueError(f"no fault is called {fault!r}: choose one of {', '.join(FAULTS)}.")
        self._drive = drive
        self.buttons = ipywidgets.ToggleButtons(options=list(FAULTS), value=fault)
        self.buttons.add_class("kvlab-faults")
        self.said = ipywidgets.HTML()
        super().__init__()
        self.buttons.observe(lambda change: self.choose(change["new"]), "value")
        self.choose(fault)

    def choose(self, fault: str) -> None:
        """Show this fault."""
        chosen = FAULTS[fault]
        self.audit = self._drive(chosen.translate)
        code = [part if "`" in part else f"`{part}`" for part in (chosen.right, chosen.wrong)]
        self.said.value = with_code(f"Instead of {code[0]}: {code[1]}. Symptom: {chosen.symptom}.")
        self.children = [self.buttons, self.said, self.audit]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle = super()._repr_mimebundle_(**kwargs) or {}
        return {**bundle, "image/svg+xml": self.audit.static(), "text/plain": self.audit.tell(0)}
