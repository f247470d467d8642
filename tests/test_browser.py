"""Which browser the browser tests take."""

import sys

import pytest

from kvlab.browser import find_browser

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in browsers are shell scripts")


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch, tmp_path):
    monkeypatch.delenv("KVLAB_BROWSER", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "playwright"))
    monkeypatch.setattr("kvlab.browser._APPLICATIONS", {})
    (tmp_path / "bin").mkdir()


def put(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_none():
    assert find_browser() is None


def test_the_environment_decides_alone(monkeypatch, tmp_path):
    put(tmp_path / "bin" / "chromium")
    mine = put(tmp_path / "mine" / "browser")
    monkeypatch.setenv("KVLAB_BROWSER", str(mine))
    assert find_browser() == mine
    monkeypatch.setenv("KVLAB_BROWSER", "absent")
    assert find_browser() is None


def test_chromium_before_chrome(tmp_path):
    chrome = put(tmp_path / "bin" / "google-chrome")
    assert find_browser() == chrome
    chromium = put(tmp_path / "bin" / "chromium-browser")
    assert find_browser() == chromium


def test_an_application_folder(monkeypatch, tmp_path):
    application = put(tmp_path / "Chrome.app" / "chrome")
    monkeypatch.setattr("kvlab.browser._APPLICATIONS", {sys.platform: (str(application),)})
    assert find_browser() == application


@pytest.mark.parametrize("inner", ["chrome-linux/chrome", "chrome-linux64/chrome"])
def test_playwrights_newest(tmp_path, inner):
    put(tmp_path / "playwright" / "chromium-1100" / inner)
    newest = put(tmp_path / "playwright" / "chromium-1200" / inner)
    assert find_browser() == newest
