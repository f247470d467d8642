"""Pins are read as pip reads them, and compared with what is installed."""

import importlib.metadata

import pytest

from kvlab.pins import canonical, disagreements, find_constraints, read_pins

TEXT = """# a comment
numpy==2.4.6
Typing_Extensions==4.16.0
triton==3.7.1; sys_platform == 'linux'

nothing-else>=1
"""


def test_read_pins():
    assert read_pins(TEXT) == {"numpy": "2.4.6", "typing-extensions": "4.16.0", "triton": "3.7.1"}


@pytest.mark.parametrize("name", ["Jupyter.Core", "jupyter_core", "JUPYTER--core"])
def test_names_are_compared_as_the_index_does(name):
    assert canonical(name) == "jupyter-core"


def test_disagreements(monkeypatch):
    installed = {"numpy": "2.4.5", "typing-extensions": "4.16.0"}

    def version(name):
        if name in installed:
            return installed[name]
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert disagreements(TEXT) == [("numpy", "2.4.5", "2.4.6")]
    installed["numpy"] = "2.4.6+cpu"
    assert disagreements(TEXT) == []


def test_the_repository_has_constraints():
    assert read_pins(find_constraints().read_text(encoding="utf-8"))["torch"] == "2.13.0"
