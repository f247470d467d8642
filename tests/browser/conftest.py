import os

import pytest

from .server import LabServer

_CHROMIUM = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


@pytest.fixture(scope="session")
def lab_server(tmp_path_factory):
    """One server for the session."""
    server = LabServer(tmp_path_factory.mktemp("lab"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def chromium(browser_path, tmp_path_factory):
    """One browser for the session, with a profile of its own."""
    from playwright.sync_api import sync_playwright

    arguments = list(_CHROMIUM)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--no-sandbox")
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(tmp_path_factory.mktemp("profile")),
            executable_path=str(browser_path),
            headless=True,
            args=arguments,
            viewport={"width": 1280, "height": 900},
        )
        yield context
        context.close()


@pytest.fixture(scope="session")
def lab(chromium, lab_server):
    """A page on the server; each test opens the notebook it needs."""
    from .lab import Lab

    page = chromium.pages[0] if chromium.pages else chromium.new_page()
    return Lab(lab_server, page)
