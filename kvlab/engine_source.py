"""Fetching what an engine says: a log file, a saved metrics page, or a metrics page over http."""

import http.client
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

MAX_BYTES = 32 * 1024 * 1024
TIMEOUT_S = 10


class SourceError(ValueError):
    """A log or a metrics page that cannot be read, with the reason."""


def read_source(place: str) -> str:
    """The text at a path or an http(s) URL, at most 32 MiB of it; bytes that are not UTF-8 become marks.

    Raises SourceError that says what was tried.
    """
    if "://" in place:
        return _decode(_fetch(place))
    path = Path(place)
    if path.is_dir():
        raise SourceError(f"{place} is a folder. Give the log file itself.")
    try:
        with path.open("rb") as file:
            return _decode(file.read(MAX_BYTES))
    except FileNotFoundError:
        raise SourceError(
            f"There is no file {place}. Give a log file, or a URL such as http://localhost:8000/metrics."
        ) from None
    except (OSError, ValueError) as error:
        raise SourceError(f"{place} cannot be read: {error}.") from None


def _decode(content: bytes) -> str:
    """UTF-8 with or without a byte order mark; UTF-16 when its mark says so (PowerShell's redirection)."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    return content.decode("utf-8-sig", errors="replace")


def _fetch(url: str) -> bytes:
    try:
        scheme = urlsplit(url).scheme.lower()
    except ValueError as error:
        raise SourceError(f"{url[:200]} is not a URL: {error}.") from None
    if scheme not in ("http", "https"):
        raise SourceError(
            f"Only http and https are fetched, not {scheme}://. Save the text and give the file."
        )
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
            return response.read(MAX_BYTES)
    except urllib.error.HTTPError as error:
        raise SourceError(
            f"{url} answered {error.code} {error.reason}. vLLM's page is at /metrics."
        ) from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise SourceError(
            f"{url} does not answer ({reason}). Is the engine running, and is this its port?"
        ) from None
