"""A recorded beam search as a script for any block manager, and as a tree of tokens."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from kvlab.recording import Frame
from kvlab.script import Operation

_MOST_TOLD = 3  # copies that the line below the figure lists one by one


class RecordedBeam(Protocol):
    """One live beam of a step: `kvlab.beam_search.Beam`."""

    request_id: Hashable
    tokens: tuple[int, ...]
    log_probability: float
    parent: Hashable


class Ended(Protocol):
    """A finished continuation: `kvlab.beam_search.Hypothesis`."""

    tokens: tuple[int, ...]
    log_probability: float
    parent: Hashable


class RecordedStep(Protocol):
    """What a step of the search did: `kvlab.beam_search.BeamStep`."""

    released: list[Hashable]
    forked: list[tuple[Hashable, Hashable]]
    beams: list[RecordedBeam]
    ended: list[Ended]


class BeamTree(NamedTuple):
    """The tree beside the tables. shown: how many of the steps have happened in each frame. text: token id ->
    what to print for it."""

    steps: Sequence[RecordedStep]
    shown: tuple[int, ...]
    text: Callable[[int], str]


def beam_script(
    steps: Sequence[RecordedStep], prompt_length: int, *, batched: bool = True
) -> tuple[list[Operation], tuple[int, ...]]:
    """The search's moves on block tables, and for each frame how many of its steps have happened.

    The prompt is appended; then for each step the dead are released, the forks made, and every beam appends
    its token. batched: all beams in one reservation; otherwise one after the other.

    Raises:
        ValueError: no steps, or a prompt without tokens.
    """
    if not steps or prompt_length < 1:
        raise ValueError("a beam search to draw needs at least one step and one token of prompt.")
    root = steps[0].beams[0].parent if steps[0].beams else steps[0].released[0]
    script, shown = [Operation("append", root, prompt_length)], [0, 0]
    for number, step in enumerate(steps, start=1):
        moves = [Operation("release", beam) for beam in step.released]
        moves += [Operation("fork", parent, other=child) for parent, child in step.forked]
        if step.beams and number < len(steps):  # the tokens of the last step are never fed
            beams = [beam.request_id for beam in step.beams]
            batch = tuple((beam, 1) for beam in beams)
            appends = [Operation("append", beam) for beam in beams]
            moves += [Operation("reserve", batch=batch)] if batched else appends
        script += moves
        shown += [number] * len(moves)
    return script, tuple(shown)


def retell(frame: Frame) -> Frame:
    """A step of the whole batch in few words, for a search grows all its beams at once."""
    if frame.operation is None or frame.operation.kind != "reserve" or not frame.slots:
        return frame
    lengths = {frame.state.lengths[rid] for rid in frame.slots}
    new = [event.block for event in frame.events if event.kind == "allocate"]
    ids = ", ".join(map(str, new))
    done = [f"block{'s' * (len(new) != 1)} {ids} allocated" if new else "every beam's block has room"]
    if len(frame.copies) > _MOST_TOLD:
        done.append(f"{len(frame.copies)} shared blocks copied")
    for copy in frame.copies if len(frame.copies) <= _MOST_TOLD else ():
        slots = f"{copy.num_slots} slot{'s' * (copy.num_slots != 1)}"
        done.append(f"{slots} copied from block {copy.source} to {copy.destination}")
    who = f"All {len(frame.slots)} beams append" if len(frame.slots) > 1 else "The one beam appends"
    return replace(frame, telling=f"{who} token {max(lengths) - 1}: {'; '.join(done)}.")
