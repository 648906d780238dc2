"""Where things lie in a checkout, from the folder in which a command is run, and what a folder there may be called."""

from __future__ import annotations

import os
import re
from pathlib import Path

from bench.errors import ConfigError

RESULTS, REPORTS, CONFIGS = Path("results"), Path("reports"), Path("configs")
PACKS = [Path("scenarios")]
SHIPPED = Path(__file__).parent / "scenarios"
"""The packs that came with an installed package; a checkout has none here."""

NAME = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$"
"""Of what is part of a folder's name: a config's own, a model's, a variant's, a plan's."""
LONGEST = 200
"""Characters of a folder's name: file systems take 255 bytes, and more is put behind it."""
DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10))}
"""No files, whatever their ending, on Windows. https://learn.microsoft.com/windows/win32/fileio/naming-a-file"""


def folder_of(run: str) -> Path:
    """The folder of a run, which is named by it, by its archive, or by its name under results/."""
    path = Path(run)
    if path.suffix == ".zip" and path.is_file():
        return path.with_suffix("")
    return path if path.is_dir() or Path(f"{path}.zip").is_file() else RESULTS / run


def name_of(folder: Path) -> str:
    """What a folder is called, however it is written: `.` and `a/..` have no name of their own."""
    return Path(os.path.normpath(Path.cwd() / folder)).name


def named(parent: Path, name: str) -> Path:
    """A folder of this name, right below `parent` on every system. Raises ConfigError for a name that could lie elsewhere."""
    shown = name if len(name) <= 60 else f"{name[:59]}…"
    problem = f"{shown!r} is no name for a folder in {parent}"
    if (device := name.partition(".")[0]).lower() in DEVICES:
        raise ConfigError(f"{problem}: '{device}' is a device on Windows; take another name")
    if name.endswith(".") or len(name) > LONGEST or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name):
        raise ConfigError(f"{problem}; use at most {LONGEST} letters, digits and . _ + -, a letter or digit first, no dot last")
    return parent / name
