"""Runs Python as a user who may nothing, with the system's interpreter where ours is root's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[3]
BECOME = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
CAN_START = "import os, sys; sys.exit(not os.access(sys.executable, os.X_OK))"


def interpreter() -> str:
    """Return a Python that another user can run; "" if there is none, or no `setpriv`, or we are not root."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    interpreters = [os.path.realpath(sys.executable), shutil.which(version, path="/usr/local/bin:/usr/bin") or "none"]
    possible = os.geteuid() == 0 and shutil.which(BECOME[0])
    return next((path for path in interpreters if possible and _ends_well([*BECOME, path, "-c", CAN_START])), "")


def as_nobody(*arguments: str, capture: bool = False, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `python ARGUMENTS` in the checkout, with a home of its own. Raises RuntimeError where `interpreter` finds none."""
    if not (python := interpreter()):
        raise RuntimeError("no setpriv, or no interpreter that another user can run; or we are not root")
    home = Path(tempfile.mkdtemp(dir="/tmp"))
    home.chmod(0o777)
    path = os.pathsep.join(
        ["tools/reports", "tests", "code/src", ".", *(each for each in sys.path if each.endswith("-packages"))]
    )
    env = {"HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": path, "PATH": os.defpath}
    try:
        command = [*BECOME, python, *arguments]
        return subprocess.run(command, check=False, capture_output=capture, text=True, env={**env, **variables}, cwd=ROOT)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _ends_well(command: list[str]) -> bool:
    return subprocess.run(command, check=False, capture_output=True, env={}).returncode == 0
