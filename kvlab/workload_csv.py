"""A workload of your own, from a CSV file: one line a request.

Columns by name, in any order and any case; others are ignored:

| column  | also accepted                  | meaning                                         |
|---------|--------------------------------|-------------------------------------------------|
| prompt  | ContextTokens (Azure traces)   | tokens of the prompt                            |
| output  | GeneratedTokens (Azure traces) | tokens of the answer                            |
| arrival | TIMESTAMP (Azure traces)       | seconds, or a date and time; optional           |
"""

from __future__ import annotations

import csv
from datetime import datetime
from math import isfinite
from os import PathLike
from pathlib import Path

from kvlab.workloads import Request, Workload

NAMES = {
    "prompt": ("prompt", "contexttokens"),
    "output": ("output", "generatedtokens"),
    "arrival": ("arrival", "timestamp"),
}


def read_workload(path: str | PathLike) -> Workload:
    """The requests of a CSV file, by arrival; those without one arrive at once. The first arrives at 0.

    Raises:
        ValueError: names the file, the line and the column, what stands there and what should.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text file in UTF-8: save it as CSV") from error
    rows = csv.reader(text.splitlines())
    columns = _columns(path, next(rows, []))
    requests = []
    for row in rows:
        if any(cell.strip() for cell in row):
            requests.append(_request(f"{path}, line {rows.line_num}", row, columns, len(requests)))
    if not requests:
        raise ValueError(f"{path} has no requests: below the header there must be a line for each")
    first = min(request.arrival for request in requests)
    ordered = sorted(requests, key=lambda request: request.arrival)
    moved = tuple(r._replace(request_id=i, arrival=r.arrival - first) for i, r in enumerate(ordered))
    return Workload(path.name, moved)


def _columns(path: Path, header: list[str]) -> dict[str, int]:
    found = [name.strip().lower() for name in header]
    columns = {}
    for wanted, names in NAMES.items():
        at = [i for i, name in enumerate(found) if name in names]
        if at:
            columns[wanted] = at[0]
        elif wanted != "arrival":
            raise ValueError(
                f"{path} has no column {wanted!r}: its first line must name the columns, for example "
                f"'prompt,output' or 'arrival,prompt,output', but is {','.join(header)!r}"
            )
    return columns


def _request(where: str, row: list[str], columns: dict[str, int], request_id: int) -> Request:
    cells = {}
    for name, at in columns.items():
        if at >= len(row):
            raise ValueError(f"{where}: there is no {name}, the line has only {len(row)} columns")
        cells[name] = row[at].strip()
    prompt, output = (_tokens(where, name, cells[name]) for name in ("prompt", "output"))
    return Request(request_id, _seconds(where, cells.get("arrival", "0")), prompt, output)


def _tokens(where: str, name: str, cell: str) -> int:
    try:
        tokens = int(cell)
    except ValueError:
        tokens = 0
    if tokens < 1:
        raise ValueError(f"{where}: {name} must be a whole number of at least 1 token, not {cell!r}")
    return tokens


def _seconds(where: str, cell: str) -> float:
    try:
        seconds = float(cell)
    except ValueError:
        try:
            # Traces have 7 digits of a second, datetime reads at most 6.
            seconds = datetime.fromisoformat(cell[:26]).timestamp()
        except ValueError:
            seconds = float("nan")
    if not isfinite(seconds):
        raise ValueError(f"{where}: arrival must be seconds or a date and time, not {cell!r}")
    return seconds
