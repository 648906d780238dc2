"""Where a result comes from: the code, the packages and the machine that made it."""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

DISTRIBUTION = "recovery-bench"
PACKAGE = Path(__file__).resolve().parent.parent
DETERMINING = ("endpoint", "errors.py", "models", "runtime", "scenario.py", "seeding.py", "tokens.py")
"""The code that determines every trial. An architecture's own is in the digest of its trials alone; what is asked and what
grades have digests of their own (`bench.packs`); all else runs trials, keeps them, or shows them."""


def code_digest(package: Path = PACKAGE) -> str:
    """Of the code that determines every trial, and of the versions of the packages it stands on."""
    return _digest_of(determining(package), package, repr(package_versions()))


def determining(package: Path = PACKAGE) -> list[Path]:
    """The files of the code that determines every trial, in order."""
    folders = [package / name for name in DETERMINING]
    return sorted(path for folder in folders for path in (folder.rglob("*.py") if folder.is_dir() else [folder]))


def architecture_digest(function: Callable[..., Any]) -> str:
    """Of the module that defines an architecture, and of what it imports from beside it, wherever it lies."""
    try:
        start = Path(inspect.getfile(inspect.unwrap(function))).resolve()
    except TypeError:
        return ""
    return _digest_of(sorted(_beside(start)), start.parent)


def _beside(start: Path) -> set[Path]:
    """A module and all modules that it reaches by imports from its own folder and the folders in it."""
    root, reached, queue = start.parent, set[Path](), [start]
    while queue:
        path = queue.pop()
        if path not in reached:
            reached.add(path)
            queue += [file for file in _imported(path, root) if file.is_file()]
    return reached


def _imported(path: Path, root: Path) -> Iterator[Path]:
    """The files that a module's imports may mean, if they lie in this folder."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [".".join(filter(None, (node.module, alias.name))) for alias in node.names] + [node.module or ""]
        else:
            continue
        for name in names:
            parts = name.split(".")
            for start in range(len(parts)):  # an absolute import names the packages above the folder, too
                module = root.joinpath(*parts[start:])
                yield from (module.with_suffix(".py"), module / "__init__.py")


def _digest_of(files: Iterable[Path], root: Path, more: str = "") -> str:
    digest = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    digest.update(more.encode())
    return digest.hexdigest()[:20]


def package_versions() -> dict[str, str]:
    """The installed versions of the packages that we require, and of Python."""
    required = metadata.requires(DISTRIBUTION) or []
    names = sorted({_package(line) for line in required if "extra ==" not in line})
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in names}}


def extra_versions(extras: Iterable[str]) -> dict[str, str]:
    """The installed versions of the packages that these optional dependencies of ours name."""
    marked = [f'extra == "{extra}"' for extra in extras] + [f"extra == '{extra}'" for extra in extras]
    lines = [line for line in metadata.requires(DISTRIBUTION) or [] if any(mark in line for mark in marked)]
    return {name: metadata.version(name) for name in sorted(map(_package, lines))}


def _package(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]


def code_version() -> dict[str, object]:
    """Our version, and where there is a git checkout its commit and whether files differ from it."""
    commit = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--", "bench", "scenarios", "configs", "pyproject.toml")
    return {
        "version": metadata.version(DISTRIBUTION),
        "commit": commit,
        "dirty": bool(changed) if commit else None,
        "digest": code_digest(),
    }


def machine() -> dict[str, object]:
    """What kind of machine this is; no name, no address, no path."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
    }


def now() -> str:
    """The time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(["git", *words], cwd=PACKAGE.parent, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
