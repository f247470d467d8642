"""What a measurement must say about where it was made: processor, device, threads, load and versions."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

import torch

VERSIONS = ("torch", "triton", "numba", "numpy")


def machine(device: torch.device | str = "cpu") -> dict:
    """As JSON. `load` is the system's average of the last minute before, where the system tells it: more
    than 0 means that others worked here, and times are then no reference."""
    return {
        "device": device_name(device),
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in VERSIONS},
    }


def device_name(device: torch.device | str) -> str:
    if torch.device(device).type != "cuda":
        return "cpu"
    properties = torch.cuda.get_device_properties(device)
    return f"{properties.name}, {properties.multi_processor_count} multiprocessors"


def processor() -> str:
    """The processor's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
