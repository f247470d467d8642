"""How the demo shows itself: a live picture on a terminal, one line a step when it is piped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kvlab.state import State
from kvlab.views.palette import paints

Show = Callable[[list, State], None]
LISTED = 12  # block ids that a line names before it only counts


@contextmanager
def screen(prompts: Mapping[str, str], out: TextIO) -> Iterator[Show]:
    """Gives `show(tokens, state)`, to call after each step with its tokens and the manager's state."""
    console = Console(file=out)
    if not console.is_terminal:
        yield from _lines(prompts, out)
        return
    answers = dict.fromkeys(prompts, "")
    with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:

        def show(tokens: list, state: State) -> None:
            for token in tokens:
                answers[token.request_id] += token.text
            live.update(picture(prompts, answers, state), refresh=True)

        yield show


def _lines(prompts: Mapping[str, str], out: TextIO) -> Iterator[Show]:
    answers = dict.fromkeys(prompts, "")
    for name, prompt in prompts.items():
        print(f"{name} asks: {prompt}", file=out)

    def show(tokens: list, state: State) -> None:
        parts = []
        for token in tokens:
            answers[token.request_id] += token.text
            parts.append(f"{token.request_id} {token.text!r} {told_table(state, token.request_id)}")
        print(f"step {tokens[0].step}: {'; '.join(parts)}; {told_free(state)}", file=out, flush=True)

    yield show
    for name, answer in answers.items():
        print(f"{name} answers: {answer.strip()}", file=out)


def told_table(state: State, request_id: str) -> str:
    if request_id not in state.tables:
        return "finished, blocks given back"
    return f"table {listed(state.tables[request_id])}"


def told_free(state: State) -> str:
    return f"free {listed(state.free)}"


def listed(blocks: tuple[int, ...]) -> str:
    """The last LISTED block ids, in brackets, and how many there are when some are left out."""
    if len(blocks) <= LISTED:
        return str(list(blocks))
    return f"[{len(blocks)} blocks, the last {', '.join(map(str, blocks[-LISTED:]))}]"


def picture(prompts: Mapping[str, str], answers: Mapping[str, str], state: State) -> Group:
    """Text beside tables: an answer and a block table for each request, the pool and the free list below."""
    colours = paints(prompts)
    rows = Table.grid(padding=(0, 1), expand=True)
    rows.add_column(ratio=3)
    rows.add_column(ratio=2)
    for name, prompt in prompts.items():
        blocks = Text(told_table(state, name))
        if name in state.lengths:
            blocks.append(f"\n{state.lengths[name]} tokens, {state.block_size} a block")
        answer = Text(answers[name].strip() or "...")
        title = Text.assemble((f" {name} ", _style(colours[name])), f" {prompt}")
        rows.add_row(Panel(answer, title=title, title_align="left"), Panel(blocks, title="block table"))
    cells = [_cell(state, block, colours) for block in range(state.num_blocks)]
    pool = Panel(Columns(cells, padding=(0, 1)), title="physical blocks", title_align="left")
    return Group(rows, pool, Text(told_free(state)))


def _cell(state: State, block: int, colours: Mapping[str, tuple]) -> Text:
    """One block: its id and holder on the holder's colour; a free block is its id alone, dim."""
    holders = state.holders(block)
    if not holders:
        return Text(f" {block:>3}   ", style="dim")
    return Text(f" {block:>3} {holders[0]} ", style=_style(colours[holders[0]]))


def _style(paint) -> str:
    return f"{_six_digits(paint.ink)} on {_six_digits(paint.fill)}"


def _six_digits(colour: str) -> str:
    digits = colour.lstrip("#")
    return "#" + ("".join(d * 2 for d in digits) if len(digits) == 3 else digits)
