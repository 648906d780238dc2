"""The places of files in a checkout, relative to the working directory, and the permitted names of folders."""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path

from bench.common.errors import ConfigError, ResultsError, nearest

RESULTS, REPORTS, CONFIGS = Path("results"), Path("reports"), Path("configs")
PACKS, STUDIES_FOLDER = [Path("scenarios")], Path("studies")
PACKAGE = Path(__file__).parents[1]
"""The folder of the code of `bench`."""
SHIPPED_PACKS = PACKAGE / "scenarios"
"""The packs of an installed package. A checkout has none here."""
CHECKOUT_STUDIES = Path(__file__).parents[2] / "studies"
"""The studies of a checkout. An installed package has none."""

NAME = r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$"
"""The pattern of a name that becomes a part of a folder's name: the name of a config, a model, a variant or a plan."""
LONGEST_NAME = 200
"""The most characters of a folder's name: file systems allow 255 bytes, and suffixes are added."""
MAX_NAMES = 2_000
"""The most names of runs with which an unknown name is compared."""
DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10))}
"""Names that are devices on Windows, with any suffix. https://learn.microsoft.com/windows/win32/fileio/naming-a-file"""


def state_folder() -> Path:
    """Return the user's folder for state that commands remember. Raises RuntimeError if the user has no home.
    https://specifications.freedesktop.org/basedir-spec/latest/"""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "recovery-bench"


def cache_folder(kind: str) -> Path:
    """Return the user's cache folder for one kind of data about runs. Raises RuntimeError if the user has no home.
    https://specifications.freedesktop.org/basedir-spec/latest/"""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recovery-bench" / kind


def expanded_path(written: str) -> Path:
    """Return a path in which a leading `~` is replaced by the user's home. The home of an unknown user is unchanged."""
    return Path(os.path.expanduser(written))  # noqa: PTH111  Path.expanduser raises there


def folder_of(run: str) -> Path:
    """Return the folder of a run. The run is given as its folder, its archive, or its name under results/. Raises
    ResultsError for an empty text, and if the run does not exist but results/ has others; the message gives the nearest
    name."""
    if not run:
        raise ResultsError(f"'' names no run; name a folder under {RESULTS}/, or its path")
    path = Path(run)
    if path.suffix == ".zip" and path.is_file():
        return path.with_suffix("")
    default_path = RESULTS / run if path.name == run else path
    folder = next((folder for folder in (path, RESULTS / run) if folder.is_dir() or Path(f"{folder}.zip").is_file()), None)
    if folder is None and (known := runs_known()):
        raise ResultsError(f"{default_path}: holds no run; {nearest(path.name, known)}")
    return folder or default_path


def runs_known() -> list[str]:
    """Return the names of folders and archives under results/, at most MAX_NAMES names."""
    try:
        names = [path.name.removesuffix(".zip") for path in islice(RESULTS.iterdir(), MAX_NAMES)]
    except OSError:
        return []
    return [name for name in names if re.match(NAME, name)]


def name_of(folder: Path) -> str:
    """Return a folder's name for any form of its path (`.` and `a/..` have no name)."""
    return Path(os.path.normpath(Path.cwd() / folder)).name


def named(parent: Path, name: str) -> Path:
    """Return the folder with this name directly in `parent`. Raises ConfigError for a name that could lead to another place
    on some system."""
    shown = name if len(name) <= 60 else f"{name[:59]}…"
    problem = f"{shown!r} is no name for a folder in {parent}"
    if (device := name.partition(".")[0]).lower() in DEVICES:
        raise ConfigError(f"{problem}: '{device}' is a device on Windows; take another name")
    if name.endswith(".") or len(name) > LONGEST_NAME or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name):
        raise ConfigError(
            f"{problem}; use at most {LONGEST_NAME} letters, digits and . _ + -, a letter or digit first, no dot last"
        )
    return parent / name
