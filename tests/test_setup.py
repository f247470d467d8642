"""pyproject.toml, constraints.txt, the environment files, the model's requirement and the Makefile agree."""

import ast
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import yaml
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kvlab import model_file
from kvlab.doctor import FLOOR

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# torch's CUDA build brings these; its CPU build, which the tests may run on, does not mention them.
CUDA = ("cuda-", "nvidia-")


def requirements() -> list[Requirement]:
    extras = PROJECT["optional-dependencies"]
    return [Requirement(line) for line in [*PROJECT["dependencies"], *extras["model"], *extras["test"]]]


def pins() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def pinned_names() -> set[str]:
    return {canonicalize_name(pin.name) for pin in pins()}


def applies(marker: Marker | None, extras: set[str], platform_matters: bool) -> bool:
    """Whether a requirement with this marker is wanted, here or (not platform_matters) on any computer."""
    if marker is None:
        return True
    if not platform_matters:
        named = set(re.findall(r'extra == "([^"]+)"', str(marker)))
        return not named or bool(named & extras)
    return any(marker.evaluate({"extra": extra}) for extra in extras or {""})


def reached(platform_matters: bool) -> set[str]:
    """Every package that the project's requirements lead to, by the metadata of what is installed here."""
    names, seen, todo = set(), set(), requirements()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        key = (name, frozenset(requirement.extras))
        if key in seen or not applies(requirement.marker, set(), platform_matters):
            continue
        seen.add(key)
        names.add(name)
        try:
            lines = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        inner = [Requirement(line) for line in lines]
        for each in inner:
            if applies(each.marker, set(requirement.extras), platform_matters):
                each.marker = None
                todo.append(each)
    return names


def test_each_package_is_pinned_exactly_once():
    counts = Counter(canonicalize_name(pin.name) for pin in pins())
    assert [name for name, count in counts.items() if count > 1] == []
    for pin in pins():
        assert re.fullmatch(r"==[^*,]+", str(pin.specifier)), f"{pin} is not one version"


def test_every_requirement_is_pinned():
    missing = {canonicalize_name(requirement.name) for requirement in requirements()} - pinned_names()
    assert not missing, f"add these to constraints.txt: {sorted(missing)}"


def test_everything_that_gets_installed_is_pinned():
    missing = {name for name in reached(platform_matters=True) - pinned_names() if not name.startswith(CUDA)}
    assert not missing, f"add these to constraints.txt: {sorted(missing)}"


def test_every_pin_is_reachable():
    stray = {name for name in pinned_names() - reached(platform_matters=False) if not name.startswith(CUDA)}
    assert not stray, f"nothing requires these pins: {sorted(stray)}"


def test_cuda_pins_are_for_linux_only():
    for pin in pins():
        if pin.name.startswith(CUDA):
            assert str(pin.marker) == 'sys_platform == "linux"', str(pin)


def test_torch_and_triton_fit_and_have_one_marker():
    by_name = {pin.name: pin for pin in pins()}
    assert (str(by_name["torch"].specifier), str(by_name["triton"].specifier)) == ("==2.13.0", "==3.7.1")
    wanted = next(requirement for requirement in requirements() if requirement.name == "triton")
    assert wanted.marker == by_name["triton"].marker
    for platform, machine, there in [
        ("linux", "x86_64", True),
        ("linux", "aarch64", True),
        ("linux", "ppc64le", False),
        ("darwin", "arm64", False),
        ("win32", "AMD64", False),
    ]:
        assert wanted.marker.evaluate({"sys_platform": platform, "platform_machine": machine}) is there


def tool_constants(name: str) -> dict[str, object]:
    """The module-level literals of tools/<name>.py."""
    tree = ast.parse((ROOT / "tools" / f"{name}.py").read_text(encoding="utf-8"))
    constants = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            try:
                constants[node.targets[0].id] = ast.literal_eval(node.value)
            except (ValueError, AttributeError):
                continue
    return constants


def environment(path: str) -> list:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))["dependencies"]


def test_the_python_floor_is_the_same_everywhere():
    floor, ceiling = tool_constants("bootstrap")["FLOOR"], tool_constants("bootstrap")["CEILING"]
    assert tool_constants("install")["FLOOR"] == floor == FLOOR
    text = ".".join(map(str, floor))
    assert PROJECT["requires-python"] == f">={text}"
    wanted = f"python>={text},<{ceiling[0]}.{ceiling[1] + 1}"
    assert wanted in environment("environment.yml")
    assert wanted in environment(".binder/environment.yml")
    assert f"Python {text} or newer" in (ROOT / "Makefile").read_text(encoding="utf-8")
    newest = ".".join(map(str, ceiling))
    assert f"Python {text} to {newest}" in (ROOT / "tools/pip_errors.py").read_text(encoding="utf-8")


def test_conda_installs_what_make_lab_installs():
    plain = [entry for entry in environment("environment.yml") if isinstance(entry, str)]
    assert [re.split("[<>=]", entry)[0] for entry in plain] == ["python", "pip"]
    from_pip = next(entry["pip"] for entry in environment("environment.yml") if isinstance(entry, dict))
    learner = tool_constants("tasks")["LEARNER"]
    assert from_pip == ["-c constraints.txt", f"-e .[{','.join(learner)}]"]


def test_binder_installs_the_same_from_post_build():
    entries = environment(".binder/environment.yml")
    assert [re.split("[<>=]", entry)[0] for entry in entries] == ["python", "pip"]
    script = ROOT / ".binder/postBuild"
    text = script.read_text(encoding="utf-8")
    learner = tool_constants("tasks")["LEARNER"]
    assert f'-c constraints.txt -e ".[{",".join(learner)}]"' in text
    assert "--no-deps --require-hashes -r requirements-model.txt" in text
    assert script.stat().st_mode & 0o100 or sys.platform == "win32"


def test_the_weights_are_one_hashed_package_of_their_own():
    lines = (ROOT / "requirements-model.txt").read_text(encoding="utf-8").splitlines()
    text = " ".join(line.rstrip("\\").strip() for line in lines if not line.startswith("#"))
    match = re.fullmatch(r"(\S+)==(\S+) +--hash=sha256:[0-9a-f]{64}", text.strip())
    assert match, text
    assert match[1] == model_file.PACKAGE
    assert match[1] not in pinned_names() | {requirement.name for requirement in requirements()}
    assert f"{match[1]} {match[2]}" in (ROOT / "NOTICE").read_text(encoding="utf-8")


def test_make_offers_what_the_tasks_offer():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    offered = re.search(r"^COMMANDS = (.+)$", text, re.MULTILINE)[1].split()
    helped = list(tool_constants("tasks")["HELP"])
    assert sorted(offered) == sorted(helped)
    tasks = (ROOT / "tools/tasks.py").read_text(encoding="utf-8")
    table = tasks[tasks.index("COMMANDS = {") :]
    assert re.findall(r'^    "([a-z-]+)":', table, re.MULTILINE) == helped


def test_ci_turns_missing_pieces_into_failures():
    text = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "export KVLAB_REQUIRE_BROWSER=1 KVLAB_REQUIRE_MODEL=1" in text
    assert text.rstrip().endswith("exec make test")
    bash = shutil.which("bash")
    if bash:
        subprocess.run([bash, "-n", str(ROOT / ".ci/run")], check=True)


@pytest.mark.parametrize("module", ["kvlab", "kvlab.__main__", "kvlab.browser"])
def test_import_is_light(module):
    heavy = ("torch", "numpy", "matplotlib", "ipywidgets", "triton", "hypothesis", "rich")
    script = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def committed_files() -> list[Path]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: there is no list of committed files")
    done = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [ROOT / name for name in done.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


MACHINE_PATH = re.compile(r"(?<![\w.~<{$)/-])/(?:work|root|home|Users|opt/wheels|opt/pypi)/[\w.]|\.\./shared")


def test_committed_files_name_no_machine():
    found = []
    for path in committed_files():
        if path == Path(__file__):
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in MACHINE_PATH.finditer(text)]
    assert found == []


@pytest.mark.parametrize(
    "text", ["see /work/x", '"/home/ann/kvlab"', "cp ../shared/facts .", "=/opt/wheels/a"]
)
def test_a_machine_path_would_be_seen(text):
    assert MACHINE_PATH.search(text)
