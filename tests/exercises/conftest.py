"""A learner's folder of its own for each test, and less patience with endless loops."""

import pytest

from kvlab.exercises import guard


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("KVLAB_HOME", str(tmp_path / "learner"))
    return tmp_path / "learner"


@pytest.fixture(autouse=True)
def short_patience(monkeypatch):
    monkeypatch.setattr(guard, "SECONDS", 1.0)
