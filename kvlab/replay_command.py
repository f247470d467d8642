"""`python -m kvlab replay TRACE...`: run recorded engine traces and stop at the first difference."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from kvlab.replay import Line, TraceError, read_trace, replay

TRACE_HELP = "a recorded trace, JSON lines; the ones that the tests use are in tests/data/traces"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE", help=TRACE_HELP)


def run(args: argparse.Namespace) -> int:
    """0: every line equal; 1: a difference; 2: a file that is no trace."""
    console = Console()
    for path in args.traces:
        try:
            operations = read_trace(path)
            steps = len(operations) - 1
            lines = track(
                replay(operations),
                path.name,
                total=steps,
                console=console,
                transient=True,
                disable=not console.is_terminal,
            )
            different = next((line for line in lines if line.differing), None)
        except OSError as error:
            console.print(
                f"{path}: cannot be read ({error.strerror}): check the path", style="red", soft_wrap=True
            )
            return 2
        except TraceError as error:
            console.print(f"{path}: {error}", style="red", highlight=False, soft_wrap=True)
            return 2
        if different is not None:
            show_difference(console, path, different)
            return 1
        equal = "hits, tables, evictions and the free queue are all equal"
        console.print(f"{path.name}: {steps} operations; {equal}", soft_wrap=True)
    return 0


def show_difference(console: Console, path: Path, line: Line) -> None:
    """Both sides of the first line that differs, field by field."""
    table = Table(title=f"{path.name}, line {line.number}: the first difference")
    for heading in ("", "engine", "kvlab"):
        table.add_column(heading, overflow="fold")
    asked = {key: value for key, value in line.operation.items() if key in ("op", "rid", "tokens", "token")}
    for key, value in asked.items():
        table.add_row(key, str(value), str(value))
    for field, value in line.engine.items():
        style = "bold red" if field in line.differing else None
        table.add_row(field, str(value), str(line.ours.get(field)), style=style)
    console.print(table)
    console.print(
        f"They differ in {', '.join(line.differing)}; all {line.number - 1} lines before are equal.",
        soft_wrap=True,
    )
