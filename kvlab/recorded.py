"""Measurements that are kept with the package: documents of `python -m kvlab bench --out`, one a machine.

A file joins by lying in `kvlab/recordings/`. What has not been measured is not there.
"""

from __future__ import annotations

import json
from importlib.resources import files


def recorded() -> dict[str, dict]:
    """Label -> document; the label says the machine, its threads or its kind, and when it was measured."""
    folder = files("kvlab") / "recordings"
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".json")), key=lambda p: p.name)
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return {label(document): document for document in documents}


def label(document: dict) -> str:
    """One line for a menu."""
    here = document["machine"]
    where = f"{here['processor']}, {here['threads']} threads" if here["device"] == "cpu" else here["device"]
    return f"{where}, {document['date'][:16].replace('T', ' ')}"
