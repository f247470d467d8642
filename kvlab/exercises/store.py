"""The learner's own small file: which exercises passed, the answers that did, and the predictions."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from kvlab.exercises.telling import say

_EMPTY = {"version": 1, "exercises": {}, "predictions": {}}


def home() -> Path:
    """The learner's folder: KVLAB_HOME if set, else the user's data folder of this system."""
    if os.environ.get("KVLAB_HOME"):
        return Path(os.environ["KVLAB_HOME"]).expanduser()
    import platformdirs

    return Path(platformdirs.user_data_dir("kvlab", appauthor=False))


def path() -> Path:
    return home() / "progress.json"


def load() -> dict:
    """What is kept. A file that cannot be read is put aside, with a sentence, and never overwritten."""
    file = path()
    try:
        text = file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return _fresh()
    except (OSError, UnicodeDecodeError) as error:
        return _unreadable(file, error)
    try:
        data = json.loads(text)
    except ValueError as error:
        return _unreadable(file, error)
    if not _well_formed(data):
        return _unreadable(file, "it has another shape than a progress file")
    return data


def update(change: Callable[[dict], None]) -> bool:
    """Load, change, write in one go: readers see the old file or the new one.

    False, with a sentence, on failure.
    """
    data = load()
    if data.get("read only"):
        return False
    change(data)
    try:
        _write(path(), data)
    except OSError as error:
        say(
            f"Your progress could not be kept in {path()}: {error}. Set KVLAB_HOME to a folder that you can "
            "write to."
        )
        return False
    return True


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _fresh() -> dict:
    return json.loads(json.dumps(_EMPTY))


def _well_formed(data: object) -> bool:
    return isinstance(data, dict) and all(
        isinstance(data.get(part), dict) and all(isinstance(entry, dict) for entry in data[part].values())
        for part in ("exercises", "predictions")
    )


def _write(file: Path, data: dict) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".progress-", suffix=".json")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(data, out, indent=1, ensure_ascii=False)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _unreadable(file: Path, reason: object) -> dict:
    number = 1
    while (aside := file.with_name(f"progress.unreadable-{number}.json")).exists():
        number += 1
    try:
        os.replace(file, aside)
    except OSError as error:
        say(
            f"Your progress file {file} could not be read ({reason}), nor put aside ({error}): nothing is "
            "kept."
        )
        return _fresh() | {"read only": True}
    say(f"Your progress file could not be read ({reason}). It is kept as {aside}, and a new one starts.")
    return _fresh()
