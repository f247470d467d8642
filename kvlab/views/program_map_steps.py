"""Which program of a decode kernel reads which positions, in numbers and in words."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import NamedTuple


class Program(NamedTuple):
    """One program of the launch; it walks positions begin .. end - 1, none when begin >= end."""

    request: Hashable
    kv_head: int
    split: int
    begin: int
    end: int


@dataclass(frozen=True)
class Launch:
    """A launch of the kernel: a program for each (sequence, KV head, split).

    tables: request id -> its block ids. lengths: request id -> its tokens. tile: positions that a program
    takes at once; splits are whole tiles. bounds: (length, split, num_splits, tile) -> (begin, end), if not
    the kernel's own rule.
    """

    tables: Mapping[Hashable, Sequence[int]]
    lengths: Mapping[Hashable, int]
    block_size: int
    num_kv_heads: int
    num_splits: int
    tile: int
    bounds: Callable[[int, int, int, int], tuple[int, int]] | None = None

    def __post_init__(self):
        for name in ("block_size", "num_kv_heads", "num_splits", "tile"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}.")
        for request, table in self.tables.items():
            room = len(table) * self.block_size
            if not 0 <= self.lengths.get(request, -1) <= room:
                raise ValueError(
                    f"request {request!r} needs a length from 0 to {room}, what its {len(table)} blocks of "
                    f"{self.block_size} hold; got {self.lengths.get(request)}."
                )

    @cached_property
    def programs(self) -> list[Program]:
        """All programs, sequence by sequence."""
        return [
            Program(request, head, split, *self._bounds(self.lengths[request], split))
            for request in self.tables
            for head in range(self.num_kv_heads)
            for split in range(self.num_splits)
        ]

    def _bounds(self, length: int, split: int) -> tuple[int, int]:
        if self.bounds is not None:
            begin, end = self.bounds(length, split, self.num_splits, self.tile)
            return max(begin, 0), min(end, length)
        share = ceil(ceil(length / self.tile) / self.num_splits) * self.tile
        return split * share, min((split + 1) * share, length)

    def blocks_of(self, program: Program) -> list[int]:
        """The blocks that a program reads, in its order."""
        size, table = self.block_size, self.tables[program.request]
        if program.begin >= program.end:
            return []
        return [table[i] for i in range(program.begin // size, ceil(program.end / size))]


def _reading(launch: Launch) -> str:
    """Whether the splits of each sequence read every position once."""
    for request, length in launch.lengths.items():
        walks = [p for p in launch.programs if p.request == request and p.kv_head == 0]
        walked = sorted(position for p in walks for position in range(p.begin, p.end))
        if walked != list(range(length)):
            wrong = next(i for i in range(length) if walked.count(i) != 1)
            return f"Position {wrong} of sequence {request} is read {walked.count(wrong)} times."
    return "No K or V is read twice."


def tell_program(launch: Launch, step: int) -> str:
    """One line: which program, which positions, which blocks. Step 0 is all of them."""
    programs = launch.programs
    if step == 0:
        busy = sum(program.begin < program.end for program in programs)
        idle = "" if busy == len(programs) else f", {len(programs) - busy} with nothing to do"
        return (
            f"{len(launch.tables)} sequences × {launch.num_kv_heads} KV heads × {launch.num_splits} splits = "
            f"{len(programs)} programs{idle}. {_reading(launch)}"
        )
    program = programs[step - 1]
    where = (
        f"program {step} of {len(programs)}  Sequence {program.request}, KV head {program.kv_head}, split "
        f"{program.split}: "
    )
    if program.begin >= program.end:
        return f"{where}no positions left, it stores zeros and ends."
    blocks = launch.blocks_of(program)
    named = f"block {blocks[0]}" if len(blocks) == 1 else f"blocks {', '.join(map(str, blocks))}"
    span = f"positions {program.begin} to {program.end - 1}"
    if program.end - program.begin == 1:
        span = f"position {program.begin}"
    return f"{where}{span}, in {named}."
