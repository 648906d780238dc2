"""Where a result comes from: the code, the packages and the machine that made it."""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.packs.imports import statements_of

DISTRIBUTION = "recovery-bench"
PACKAGE = Path(__file__).resolve().parent.parent
FOLDERS = ("answers", "effects", "endpoint", "environment", "models", "runtime")
DETERMINING = (
    *FOLDERS,
    "bounds.py",
    "digests.py",
    "errors.py",
    "nesting.py",
    "numbers.py",
    "raised.py",
    "registry.py",
    "scenario.py",
    "seeding.py",
    "tokens.py",
)
"""The code that determines every trial. An architecture's own is in the digest of its trials alone; what is asked and what
grades have digests of their own (`bench.packs`); all else runs trials, keeps them, or shows them."""


def code_digest(package: Path = PACKAGE) -> str:
    """Of the code that determines every trial, and of the versions of the packages it stands on."""
    return _digest_of(determining(package), package, repr(package_versions()))


def determining(package: Path = PACKAGE) -> list[Path]:
    """The files of the code that determines every trial, in order."""
    folders = [package / name for name in DETERMINING]
    return sorted(path for folder in folders for path in (folder.rglob("*.py") if folder.is_dir() else [folder]))


def architecture_digest(function: Callable[..., Any], module: str = "") -> str:
    """Of the module that defines an architecture, of the one under whose name it was loaded, and of what they import from
    beside them, wherever they lie. `code_digest` has the package's own code."""
    homes = dict.fromkeys((_home_of(function), _file_of(module)))
    return "+".join(_digest_of(sorted(_reached(home, root)), root) for home, root in filter(None, homes))


def _home_of(function: Callable[..., Any]) -> tuple[Path, Path] | None:
    plain = inspect.unwrap(function)
    return _file_of(getattr(plain, "__module__", "")) if inspect.isroutine(plain) else None


def _file_of(module: str) -> tuple[Path, Path] | None:
    """A loaded module's file, and the folder in which its imports are followed: for one of somebody's own the folder from which
    it is imported, or of an installed package its own."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if not file:
        return None
    home = Path(file).resolve()
    if home.is_relative_to(PACKAGE):
        return home, home.parent
    depth = module.count(".") + (home.name == "__init__.py")
    is_installed = "site-packages" in home.parents[depth].parts
    return home, home.parents[max(0, depth - is_installed)]


def _reached(start: Path, root: Path) -> set[Path]:
    """A module and all modules that it reaches by imports from this folder and the folders in it."""
    reached, queue = set[Path](), [start]
    ours = () if start.is_relative_to(PACKAGE) else (PACKAGE,)
    names = cache(_names_in)  # of this one search: a folder is asked once, and not for each module that may lie in it
    while queue:
        path = queue.pop()
        if path in reached or not path.is_relative_to(root) or any(map(path.is_relative_to, ours)):
            continue
        reached.add(path)
        packages = (folder / "__init__.py" for folder in path.parents if folder.is_relative_to(root))
        queue += [file.resolve() for file in (*packages, *_imported(path, root, names)) if file.is_file()]
    return reached


def _names_in(folder: Path) -> frozenset[str]:
    """None where there is no such folder."""
    return frozenset(path.name for path in folder.iterdir()) if folder.is_dir() else frozenset()


NamesIn = Callable[[Path], frozenset[str]]


def _imported(path: Path, root: Path, names_in: NamesIn) -> Iterator[Path]:
    """The files that a module's imports may mean, if they lie in this folder."""
    try:
        statements = statements_of(path.read_bytes())
    except (SyntaxError, ValueError):
        return  # it was never imported
    for statement in statements:
        names = [alias.name for alias in statement.names]
        if isinstance(statement, ast.Import):
            for name in names:
                yield from _absolute(name.split("."), root, names_in)
        else:
            module = statement.module.split(".") if statement.module else []
            for parts in ([*module, name] for name in names):
                if statement.level:
                    yield from _on_the_way(path.parents[statement.level - 1], parts, names_in)
                else:
                    yield from _absolute(parts, root, names_in)


def _absolute(parts: Sequence[str], root: Path, names_in: NamesIn) -> Iterator[Path]:
    """An absolute import names the packages above the folder, too, of which we do not know how many there are."""
    for start in range(len(parts)):
        yield from _on_the_way(root, parts[start:], names_in)


def _on_the_way(folder: Path, parts: Sequence[str], names_in: NamesIn) -> Iterator[Path]:
    """The packages that an import runs, one in the other, and the module at its end, as far as there are such."""
    for part in parts:
        there = names_in(folder)
        if f"{part}.py" in there:
            yield folder / f"{part}.py"
        if part not in there:
            return
        folder /= part
        yield folder / "__init__.py"


def _digest_of(files: Iterable[Path], root: Path, more: str = "") -> str:
    digest = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    digest.update(more.encode())
    return digest.hexdigest()[:20]


@cache
def package_versions() -> Mapping[str, str]:
    """The installed versions of the packages that we require, and of Python. Read once."""
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
