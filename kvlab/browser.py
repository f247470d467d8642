"""Where a Chromium-family browser is on this computer; only the browser tests need one."""

import os
import shutil
import sys
from pathlib import Path

_COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_APPLICATIONS = {
    "darwin": (
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    ),
    "win32": ("C:/Program Files/Google/Chrome/Application/chrome.exe",),
}
_PLAYWRIGHT_CACHE = {
    "darwin": "~/Library/Caches/ms-playwright",
    "win32": "~/AppData/Local/ms-playwright",
}
_PLAYWRIGHT_BINARIES = (
    "chromium-*/chrome-linux*/chrome",
    "chromium-*/chrome-mac*/*.app/Contents/MacOS/*",
    "chromium-*/chrome-win*/chrome.exe",
)


def find_browser() -> Path | None:
    """The path of a Chromium or Chrome binary, or None.

    The environment variable KVLAB_BROWSER decides alone when it is set. Otherwise: the commands on PATH,
    then the usual application folders, then what `playwright install chromium` left in its cache.
    """
    chosen = os.environ.get("KVLAB_BROWSER")
    if chosen:
        path = shutil.which(chosen)
        return Path(path) if path else None
    for command in _COMMANDS:
        path = shutil.which(command)
        if path:
            return Path(path)
    for application in _APPLICATIONS.get(sys.platform, ()):
        candidate = Path(application)
        if candidate.is_file():
            return candidate
    return _playwright_browser()


def _playwright_browser() -> Path | None:
    default = _PLAYWRIGHT_CACHE.get(sys.platform, "~/.cache/ms-playwright")
    cache = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or default).expanduser()
    found = [path for pattern in _PLAYWRIGHT_BINARIES for path in cache.glob(pattern) if path.is_file()]
    return max(found, default=None)
