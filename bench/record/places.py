"""Find the place in a user's code where an exception was raised: the file and line that its author can correct."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
LIBRARIES = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib"))


def place_of(error: BaseException) -> str:
    """Return `folder/file.py:12` of the last frame outside of libraries, preferably in a user's file and not in ours; "" if
    there is none."""
    frames = [(Path(frame.filename), frame.lineno) for frame in reversed(traceback.extract_tb(error.__traceback__))]
    known = [(path.resolve(), line) for path, line in frames if path.is_file() and not _is_library(path.resolve())]
    authors = [(path, line) for path, line in known if not _is_ours(path)]
    for path, line in (*authors, *known):
        return f"{path.parent.name}/{path.name}:{line}"
    return ""


def _is_library(path: Path) -> bool:
    return any(path.is_relative_to(library) for library in LIBRARIES) and not path.is_relative_to(PACKAGE)


def _is_ours(path: Path) -> bool:
    """Whether a file is in the package, but not among its architectures."""
    return path.is_relative_to(PACKAGE) and not path.is_relative_to(PACKAGE / "run" / "architectures")
