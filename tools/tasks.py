"""What each `make` command does, once bootstrap.py has found a Python for it."""

import os
import shutil
import subprocess
import sys

from install import BIN, PYTHON, ROOT, SetupError, ensure

HELP = {
    "lab": "set everything up and open the notebooks in JupyterLab",
    "test": "set everything up and run all checks (ARGS='tests/test_doctor.py -x' for some of them)",
    "doctor": "what is installed here, what is missing, and what to do about it",
    "demo": "a real model decoding through a paged cache, in the terminal",
    "bench": "time the package's own steps",
    "bench-views": "time the pictures, in Chromium too",
    "lint": "ruff over the code and the notebooks",
    "format": "let ruff put the code and the notebooks in order",
    "clean": "remove .venv and all caches; your notebooks and answers stay",
    "help": "this list",
}
LEARNER = ("model",)
DEVELOPER = ("model", "test")
CACHES = (".venv", ".pytest_cache", ".ruff_cache", ".hypothesis", "build", "dist", "kvlab.egg-info")


def main(arguments: list[str]) -> int:
    name, extra = (arguments[0] if arguments else "help"), arguments[1:]
    command = COMMANDS.get(name)
    if command is None:
        print(f"There is no command {name!r}; `make help` lists them.", file=sys.stderr)
        return 2
    try:
        return command(extra)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error}: put that right, then run `make {name}` again.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"Stopped. `make {name}` takes it up where it was.", file=sys.stderr)
        return 130


def lab(extra: list[str]) -> int:
    ensure(LEARNER, "make lab")
    options = ["--ServerApp.ip=127.0.0.1", "--LabApp.default_url=/lab/tree/00_start_here.ipynb"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")  # containers; the token and 127.0.0.1 still guard the server
    # "notebooks" is the root folder; a kernel of the same name elsewhere must not shadow .venv's own.
    command = ["-m", "jupyterlab", "notebooks", *options, *extra]
    return run(*command, JUPYTER_PREFER_ENV_PATH="1")


def test(extra: list[str]) -> int:
    ensure(DEVELOPER, "make test")
    status = lint([])
    if status:
        return status
    jobs = os.environ.get("KVLAB_JOBS", str(min(2, os.cpu_count() or 1)))
    parallel = ["-n", jobs, "--dist", "loadfile"] if jobs not in ("0", "1") else []
    return run("-m", "pytest", *parallel, *extra, OMP_NUM_THREADS="1")


def lint(extra: list[str]) -> int:
    ensure(DEVELOPER, "make lint")
    status = run("-m", "ruff", "check", *extra) or run("-m", "ruff", "format", "--check", *extra)
    if status:
        print("`make format` puts most of this right.", file=sys.stderr)
    return status


def format_(extra: list[str]) -> int:
    ensure(DEVELOPER, "make format")
    return run("-m", "ruff", "check", "--fix", *extra) or run("-m", "ruff", "format", *extra)


def bench(extra: list[str]) -> int:
    """Each script of bench/ in turn; the first that misses its target decides the exit code."""
    ensure(LEARNER, "make bench")
    statuses = []
    for script in sorted((ROOT / "bench").glob("*.py")):
        print(f"== {script.relative_to(ROOT)}", flush=True)
        statuses.append(run(str(script), *extra))
    return next((status for status in statuses if status), 0)


def bench_views(extra: list[str]) -> int:
    ensure(DEVELOPER, "make bench-views")
    return run("tools/bench_views.py", *extra)


def doctor(extra: list[str]) -> int:
    ensure(LEARNER, "make doctor")
    return run("-m", "kvlab", "doctor", *extra)


def demo(extra: list[str]) -> int:
    ensure(LEARNER, "make demo")
    return run("-m", "kvlab", "demo", *extra)


def clean(extra: list[str]) -> int:
    for name in CACHES:
        shutil.rmtree(ROOT / name, ignore_errors=True)
    for folder in ("kvlab", "tests", "tools", "bench", "notebooks"):
        for cache in ("__pycache__", ".ipynb_checkpoints"):
            for path in (ROOT / folder).rglob(cache):
                shutil.rmtree(path, ignore_errors=True)
    return 0


def help_(extra: list[str]) -> int:
    print("kvlab: learn paged KV caches by building one.\n")
    for name, text in HELP.items():
        print(f"  make {name:<12} {text}")
    return 0


def run(*arguments: str, **variables: str) -> int:
    """Run .venv's Python on these arguments as if .venv were active; variables already set are kept."""
    environment = {**variables, **os.environ, "VIRTUAL_ENV": str(BIN.parent)}
    environment["PATH"] = os.pathsep.join([str(BIN), os.environ.get("PATH", os.defpath)])
    environment.pop("PYTHONHOME", None)
    process = subprocess.Popen([str(PYTHON), *arguments], cwd=ROOT, env=environment)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # Ctrl-C reaches the child too; it decides when to stop


COMMANDS = {
    "lab": lab,
    "test": test,
    "doctor": doctor,
    "demo": demo,
    "bench": bench,
    "bench-views": bench_views,
    "lint": lint,
    "format": format_,
    "clean": clean,
    "help": help_,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
