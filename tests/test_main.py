"""`python -m kvlab`: the table of commands, and what a wrong command gets to hear."""

import argparse
import subprocess
import sys
import types
from importlib import import_module

import pytest

import kvlab.__main__ as cli
from kvlab import __version__


@pytest.mark.parametrize("argv", [[], ["--help"], ["help"]])
def test_help_lists_every_command(capsys, argv):
    assert cli.main(argv) == 0
    shown = capsys.readouterr().out
    for name, (_, text) in cli.COMMANDS.items():
        assert name in shown and text in shown


@pytest.mark.parametrize(("name", "hint"), [("docter", "did you mean doctor?"), ("zzz", "there are: doctor")])
def test_unknown_command(capsys, name, hint):
    assert cli.main([name]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert repr(name) in streams.err and hint in streams.err


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"kvlab {__version__}"


@pytest.fixture
def command(monkeypatch):
    """A command `stub` with one option; its run is set by the test."""
    module = types.ModuleType("stub_command")
    module.add_arguments = lambda parser: parser.add_argument("--count", type=int, default=1)
    monkeypatch.setitem(sys.modules, "stub_command", module)
    monkeypatch.setitem(cli.COMMANDS, "stub", ("stub_command", "a command for this test"))
    return module


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (1, 1)])
def test_a_command_gets_its_options_and_gives_its_exit_code(command, returned, code):
    seen = []
    command.run = lambda args: seen.append(args.count) or returned
    assert cli.main(["stub", "--count", "3"]) == code
    assert seen == [3]


def test_ctrl_c_is_quiet(command, capsys):
    def interrupted(args):
        raise KeyboardInterrupt

    command.run = interrupted
    assert cli.main(["stub"]) == 130
    assert "Stopped." in capsys.readouterr().err


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_each_command_has_the_two_functions(name):
    module = import_module(cli.COMMANDS[name][0])
    module.add_arguments(argparse.ArgumentParser())
    assert callable(module.run)


def test_as_a_program():
    done = subprocess.run([sys.executable, "-m", "kvlab", "nothing"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
