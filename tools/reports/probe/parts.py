"""The parts that nobody here wrote: agents and servers in their pinned versions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PYTHON, NODE = Path("venv", "bin"), Path("agents", "node_modules", ".bin")


def install(folder: Path) -> None:
    """Install the agents and the servers in a folder, unless they are there."""
    shutil.copytree(HERE / "agents", folder / "agents", dirs_exist_ok=True)
    if not (folder / PYTHON / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    wanted = str(HERE / "agents" / "requirements.txt")
    subprocess.run([folder / PYTHON / "python", "-m", "pip", "install", "--quiet", "--requirement", wanted], check=True)
    if shutil.which("npm"):
        subprocess.run(["npm", "install", "--no-fund", "--no-audit", "--loglevel=error"], cwd=folder / "agents", check=True)
