"""Where things are in a checkout, from the working directory, and which names folders there may have."""

from __future__ import annotations

import os
import re
from pathlib import Path

from bench.errors import ConfigError

RESULTS, REPORTS, CONFIGS = Path("results"), Path("reports"), Path("configs")
PACKS = [Path("scenarios")]
SHIPPED = Path(__file__).parent / "scenarios"
"""The packs of an installed package. A checkout has none here."""

NAME = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$"
"""The names that are part of a folder's name: of a config, a model, a variant, a plan."""
LONGEST = 200
"""The most characters of a folder's name: file systems allow 255 bytes, and suffixes are added."""
DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10))}
"""Names that are devices on Windows, whatever their ending. https://learn.microsoft.com/windows/win32/fileio/naming-a-file"""


def folder_of(run: str) -> Path:
    """Return the folder of a run that is named by its folder, its archive, or its name under results/."""
    path = Path(run)
    if path.suffix == ".zip" and path.is_file():
        return path.with_suffix("")
    return path if path.is_dir() or Path(f"{path}.zip").is_file() else RESULTS / run


def name_of(folder: Path) -> str:
    """Return a folder's name, however its path is written (`.` and `a/..` have no name)."""
    return Path(os.path.normpath(Path.cwd() / folder)).name


def named(parent: Path, name: str) -> Path:
    """Return the folder of this name directly in `parent`, on every system. Raises ConfigError for a name that could lead
    elsewhere."""
    shown = name if len(name) <= 60 else f"{name[:59]}…"
    problem = f"{shown!r} is no name for a folder in {parent}"
    if (device := name.partition(".")[0]).lower() in DEVICES:
        raise ConfigError(f"{problem}: '{device}' is a device on Windows; take another name")
    if name.endswith(".") or len(name) > LONGEST or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name):
        raise ConfigError(f"{problem}; use at most {LONGEST} letters, digits and . _ + -, a letter or digit first, no dot last")
    return parent / name
