"""`bench new`: a small pack that works, copied from the package's template."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

from bench.errors import PackError
from bench.paths import PACKS

TEMPLATE = Path(__file__).parents[1] / "templates" / "scenario"


def new_scenario(name: str, into: Path) -> Path:
    """Copy the template to `into/name`. Raises PackError where the name is no identifier or is taken."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise PackError(f"'{name}' is no name for a pack; use lower-case letters, digits and underscores, a letter first")
    folder = into / name
    if folder.exists():
        raise PackError(f"{folder} exists already; choose another name, or remove it")
    shutil.copytree(TEMPLATE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    readme = folder / "README.md"
    readme.write_text(readme.read_text(encoding="utf-8").replace("SCENARIO_NAME", name), encoding="utf-8")
    return folder


def check_command(folder: Path) -> str:
    """The command that checks the pack in this folder, from where we stand."""
    where = "" if folder.parent in PACKS else f" --scenarios {shlex.quote(str(folder.parent))}"
    return f"bench check {folder.name}{where}"
