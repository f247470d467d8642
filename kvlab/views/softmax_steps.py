"""What one block adds to an online softmax, in numbers and in words."""

from collections.abc import Sequence
from math import exp, isfinite
from typing import Any, NamedTuple


class Update(NamedTuple):
    """The running values before and after one block.

    factor: exp(old_max - new_max), what the old sum and output are scaled by (0 before anything was seen).
    added: the sum of exp(score - new_max) over the block.
    """

    old_max: float
    new_max: float
    factor: float
    old_sum: float
    added: float
    new_sum: float


def update(trace: Sequence[Any], step: int) -> Update:
    """The update that trace[step - 1] made; step counts from 1."""
    now = trace[step - 1]
    old_max, old_sum = (
        (trace[step - 2].running_max, trace[step - 2].running_sum) if step > 1 else (float("-inf"), 0.0)
    )
    factor = exp(old_max - now.running_max) if isfinite(old_max) and isfinite(now.running_max) else 0.0
    added = sum(exp(score - now.running_max) for score in now.scores if isfinite(score))
    return Update(old_max, now.running_max, factor, old_sum, added, now.running_sum)


def number(value: float) -> str:
    """A value in three significant figures, with a real minus sign."""
    if value == float("-inf"):
        return "−∞"
    return f"{value:.3g}".replace("-", "−")


def tell_softmax(trace: Sequence[Any], step: int) -> str:
    """One line: the block, its positions, and what happens to maximum and sum."""
    if not trace:
        return "No position counts: the output is zeros."
    where = f"step {step} of {len(trace)}"
    if step == 0:
        return f"{where}  Nothing seen yet: maximum −∞, sum 0, output 0."
    now, change = trace[step - 1], update(trace, step)
    first, last = now.positions[0], now.positions[-1]
    span = f"position {first}" if first == last else f"positions {first} to {last}"
    line = f"{where}  Block {now.block}, {span}: "
    if change.old_max == float("-inf"):
        line += f"maximum {number(change.new_max)}"
    elif change.new_max > change.old_max:
        line += (
            f"a larger score, maximum {number(change.old_max)} → {number(change.new_max)}; "
            f"what came before shrinks by {number(change.factor)}"
        )
    else:
        line += f"no larger score, the maximum stays {number(change.new_max)}"
    return f"{line}; sum {number(change.new_sum)}."
