"""progress(): how far the learner is, notebook by notebook."""

from __future__ import annotations

from html import escape

from kvlab.exercises import store
from kvlab.exercises.asking import is_right
from kvlab.exercises.exercise import NOT_ATTEMPTED, PASSED
from kvlab.exercises.registry import Folder, folders, get, get_prediction
from kvlab.exercises.telling import MARKS


class Board:
    """The progress as a table: HTML in a notebook, lines of text elsewhere."""

    def __init__(self, data: dict):
        self.rows = [_row(folder, data) for folder in folders()]
        self.kept_in = store.path()

    def __str__(self) -> str:
        lines = [
            f"{row['notebook']}: {row['passed']} of {len(row['states'])} exercises passed"
            + "".join(f"\n  {MARKS[state]} {id} {title}" for id, title, state in row["states"])
            + (f"\n  {row['predicted']} of {row['asked']} predictions made" if row["asked"] else "")
            for row in self.rows
        ]
        return "\n".join([*lines, f"Kept in {self.kept_in}"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "<tr><th>Notebook</th><th>Exercises</th><th>Passed</th><th>Predictions</th></tr>"
        body = "".join(_html_row(row) for row in self.rows)
        legend = f"{MARKS['passed']} passed · {MARKS['failed']} tried · {MARKS[NOT_ATTEMPTED]} not attempted."
        kept = f"Kept in <code>{escape(str(self.kept_in))}</code>; run this cell again to refresh."
        return f'<table class="kvlab-progress">{head}{body}</table><p style="opacity:.8">{legend} {kept}</p>'


def progress() -> Board:
    """The board of all notebooks: exercises passed, tried or not attempted, and predictions made."""
    return Board(store.load())


def _row(folder: Folder, data: dict) -> dict:
    states = []
    for id in folder.exercise_ids:
        entry = data["exercises"].get(id)
        states.append((id, get(id).title, entry.get("state", "failed") if entry else NOT_ATTEMPTED))
    made = {id: data["predictions"][id] for id in folder.prediction_ids if id in data["predictions"]}
    return {
        "notebook": f"{folder.number} {folder.title}",
        "file": folder.notebook,
        "states": states,
        "passed": sum(state == PASSED for _, _, state in states),
        "asked": len(folder.prediction_ids),
        "predicted": len(made),
        "right": sum(is_right(get_prediction(id), entry.get("answer")) for id, entry in made.items()),
    }


def _html_row(row: dict) -> str:
    chips = " ".join(_chip(*exercise) for exercise in row["states"]) or "none"
    total = len(row["states"])
    bar = f"<progress max='{total}' value='{row['passed']}' style='width:6em'></progress> " if total else ""
    predicted = f"{row['predicted']} of {row['asked']} made, {row['right']} right" if row["asked"] else "none"
    return (
        f'<tr><td style="text-align:left"><a href="{escape(row["file"])}">{escape(row["notebook"])}</a></td>'
        f'<td style="text-align:left">{chips}</td><td>{bar}{row["passed"]} of {total}</td>'
        f"<td>{predicted}</td></tr>"
    )


def _chip(id: str, title: str, state: str) -> str:
    weight = "font-weight:600" if state == PASSED else "opacity:.75" if state == NOT_ATTEMPTED else ""
    name = escape(id.partition(".")[2])
    style = f"white-space:nowrap;{weight}"
    return f'<span title="{escape(title)}: {state}" style="{style}">{MARKS[state]} {name}</span>'
