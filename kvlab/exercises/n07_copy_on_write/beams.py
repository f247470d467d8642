"""A short beam search with given scores, turned into a script of operations by a learner's step function."""

from __future__ import annotations

from collections.abc import Callable

ROUNDS = (
    ((-0.4, "A"), (-0.9, "A"), (-1.3, "A"), (-2.2, "A")),
    ((-1.0, "A"), (-1.1, "B"), (-1.2, "A"), (-1.9, "B"), (-2.5, "C")),
    ((-1.4, "D"), (-1.5, "D"), (-1.6, "B"), (-2.0, "A"), (-2.8, "B")),
)


def search(step: Callable, *, prompt: int = 6, width: int = 3) -> str:
    """The script of three rounds: A holds the prompt, forks are called B, C, D, E.

    Args:
        step: `beam_step(beams, candidates, width, names)`, returning lines.
    """
    script, beams, names = [f"append A {prompt}"], ["A"], list("BCDEFGH")
    for candidates in ROUNDS:
        lines = step(list(beams), list(candidates), width, list(names))
        script += lines
        beams = [line.split()[1] for line in lines if line.startswith("append")]
        names = [name for name in names if name not in beams]
    return "; ".join(script)
