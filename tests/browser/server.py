"""One JupyterLab server that touches nothing outside a temporary directory."""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"

_SETTINGS = {
    # Every cell stays in the page, so that a test finds it without scrolling.
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    # Typed text must arrive as typed.
    "@jupyterlab/codemirror-extension/plugin": {"defaultConfig": {"autoClosingBrackets": False}},
}


class LabServer:
    """JupyterLab on a copy of notebooks/, with its own config, data, settings and learner directories."""

    def __init__(self, home: Path):
        self.home = home
        self.root = home / "notebooks"
        self.learner = home / "learner"
        self.token = secrets.token_hex(16)
        self.url = ""
        self._process: subprocess.Popen | None = None
        shutil.copytree(NOTEBOOKS, self.root, ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
        self._write_settings()
        self._write_kernelspec()

    def start(self, timeout: float = 60) -> None:
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}"
        log = (self.home / "server.log").open("w")
        command = [sys.executable, "-m", "jupyterlab", *self._options(port)]
        self._process = subprocess.Popen(
            command, env=self._environment(), cwd=self.root, stdout=log, stderr=subprocess.STDOUT
        )
        deadline = time.monotonic() + timeout
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"JupyterLab did not start:\n{self.log()}")
            time.sleep(0.2)

    def stop(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        return (self.home / "server.log").read_text()[-4000:]

    def notebook_url(self, name: str) -> str:
        return f"{self.url}/lab/tree/{name}?reset&token={self.token}"

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/api?token={self.token}", timeout=2) as reply:
                return reply.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def _options(self, port: int) -> list[str]:
        options = [
            "--no-browser",
            f"--ServerApp.port={port}",
            "--ServerApp.ip=127.0.0.1",
            "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={self.token}",
            f"--ServerApp.root_dir={self.root}",
            "--LabApp.expose_app_in_browser=True",
            "--LabApp.extension_manager=readonly",
            f"--LabApp.user_settings_dir={self.home / 'settings'}",
            f"--LabApp.workspaces_dir={self.home / 'workspaces'}",
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            options.append("--allow-root")
        return options

    def _environment(self) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "PYTEST"))}
        return {
            **inherited,
            "JUPYTER_CONFIG_DIR": str(self.home / "config"),
            "JUPYTER_DATA_DIR": str(self.home / "data"),
            "JUPYTER_RUNTIME_DIR": str(self.home / "runtime"),
            "JUPYTER_PREFER_ENV_PATH": "0",
            "IPYTHONDIR": str(self.home / "ipython"),
            "KVLAB_HOME": str(self.learner),
            "OMP_NUM_THREADS": "1",
        }

    def _write_settings(self) -> None:
        for plugin, values in _SETTINGS.items():
            path = self.home / "settings" / f"{plugin}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values))

    def _write_kernelspec(self) -> None:
        folder = self.home / "data" / "kernels" / "python3"
        folder.mkdir(parents=True)
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec = {"argv": argv, "display_name": "Python 3", "language": "python"}
        (folder / "kernel.json").write_text(json.dumps(spec))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
