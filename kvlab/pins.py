"""Reading constraints.txt and comparing it with what is installed."""

import importlib.metadata
import re
from pathlib import Path

_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;]+)")


def find_constraints() -> Path | None:
    """constraints.txt of the repository that this package is used from, or None when it is not there."""
    path = Path(__file__).resolve().parent.parent / "constraints.txt"
    return path if path.is_file() else None


def read_pins(text: str) -> dict[str, str]:
    """{package: pinned version} of a constraints file; names as `-` and lower case."""
    matches = (_PIN.match(line.strip()) for line in text.splitlines())
    return {canonical(match[1]): match[2] for match in matches if match}


def disagreements(text: str) -> list[tuple[str, str, str]]:
    """(package, installed version, pinned version) of each installed package that differs from its pin.

    A local build label, as in torch 2.13.0+cpu, counts as the same version.
    """
    different = []
    for name, pinned in read_pins(text).items():
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if installed.partition("+")[0] != pinned:
            different.append((name, installed, pinned))
    return different


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
