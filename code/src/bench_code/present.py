"""Finds the present value of each fact that an execution may have relied on."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from bench.common.files import opened
from bench_code.record import ABSENT, Fact
from bench_code.units import Module, digest, parse


class Present:
    """Finds the present values of facts in one tree.

    Args:
        root: The folder of the tree. Names of its files are relative to it.
        environment: The environment variables; by default those of this process.
        parse: Parses a source text. The execution state passes a function that remembers what it parsed.
    """

    def __init__(self, root: Path, environment: dict[str, str] | None = None, parse: Callable[[bytes], Module] = parse):
        self.root = root
        self._parse = parse
        self.environment = dict(os.environ) if environment is None else environment
        self._modules: dict[str, Module | None] = {}

    def stale(self, facts: Iterable[Fact]) -> set[Fact]:
        """Return the facts that no longer hold."""
        return {fact for fact in facts if self.value(fact.kind, fact.name) != fact.value}

    def value(self, kind: str, name: str) -> str:
        """Return the present value of the fact of this kind and name."""
        if kind in ("body", "skeleton", "effects"):
            path, _, function = name.partition("::")
            module = self.module(path)
            if module is None:
                return ABSENT
            return module.bodies.get(function, ABSENT) if kind == "body" else module.skeleton
        if kind == "file":
            return file_value(self.root / name)
        if kind == "status":
            return status_value(self.root / name)
        if kind == "listing":
            return listing_value(self.root / name)
        if kind == "scan":
            return scan_value(self.root / name)
        if kind == "name":
            return self._status_of(name)
        if kind == "environment":
            return self.variable(name)
        return platform_value() if kind == "platform" else ABSENT  # what is drawn is never the same

    def module(self, path: str) -> Module | None:
        """Return a file of the tree, parsed; None if there is no such file."""
        if path not in self._modules:
            try:
                with opened(self.root / path) as file:
                    self._modules[path] = self._parse(file.read())
            except (OSError, ValueError):
                self._modules[path] = None
        return self._modules[path]

    def python_files(self) -> set[str]:
        """Return the paths of all Python files below the root, without those in hidden folders."""
        found_paths = set[str]()
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if not name.startswith(".") and name not in LEFT]
            inside = os.path.relpath(folder, self.root)
            found_paths |= {os.path.normpath(os.path.join(inside, name)) for name in names if name.endswith(".py")}
        return found_paths

    def variable(self, name: str) -> str:
        """Return the digest of a variable of the environment, or of all variables if the name is "*"."""
        if name == "*":
            return digest("\0".join(f"{key}={self.environment[key]}" for key in sorted(self.environment) if key not in IGNORED))
        return digest(self.environment[name]) if name in self.environment else ABSENT

    def _status_of(self, name: str) -> str:
        """Return the file that a module's name leads to. `name` is `MODULE in FOLDER:FOLDER`, with the folders to search."""
        module, _, search = name.partition(" in ")
        portions = []
        for folder in search.split(":"):
            base = os.path.join(self.root, folder, *module.split("."))
            compiled = [f"{start}{suffix}" for start in (f"{base}{os.sep}__init__", base) for suffix in EXTENSION_SUFFIXES]
            for path in (*compiled, os.path.join(base, "__init__.py"), f"{base}.py"):
                if os.path.isfile(path):
                    content = file_value(path) if path in compiled else ""
                    return f"{os.path.relpath(path, self.root)} {content}".strip()
            if os.path.isdir(base):
                portions.append(os.path.relpath(base, self.root))
        return ":".join(portions) or ABSENT


AT_START = ("PYTHONPATH", "PYTHONSAFEPATH", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD")
"""Variables that tell Python or pytest what to load when a process starts."""
FROM_OUTSIDE = ("TZ", "LANG", "LC_ALL")
"""Variables that the C library reads. No recorder sees these reads."""
IGNORED = frozenset({"PYTEST_CURRENT_TEST", "PYTEST_VERSION", "_", "SHLVL", "PWD", "OLDPWD", "COLUMNS", "LINES"})
"""Variables that pytest or the shell sets, with values that differ from call to call."""


def file_value(path: str | Path) -> str:
    """Return a file's version: the digest of its content and whether it is executable, or a word such as "folder"."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            return "folder"
        if not stat.S_ISREG(mode):
            return "special"
        with open(path, "rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()[:20]
        return f"{content} executable" if mode & 0o111 else content
    except (OSError, ValueError):
        return "unreadable" if os.path.lexists(path) else ABSENT


def status_value(path: str | Path) -> str:
    """Return whether there is a file or a folder, and whether a link leads to it."""
    kinds = (("folder", os.path.isdir), ("file", os.path.isfile), ("special", os.path.exists))
    kind = next((kind for kind, holds in kinds if holds(path)), ABSENT)
    return f"{kind} by a link" if os.path.islink(path) else kind


def listing_value(path: str | Path) -> str:
    """Return the digest of the names in a folder, without the names in LEFT."""
    try:
        return digest("\0".join(sorted(name for name in os.listdir(path) if name not in LEFT)))
    except (OSError, ValueError):
        return ABSENT


def scan_value(path: str | Path) -> str:
    """Return the digest of what `os.scandir` tells of a folder: its names, which are folders, and the sizes of the others."""
    try:
        with os.scandir(path) as entries:
            listed = sorted(
                (entry.name, "folder" if entry.is_dir() else str(entry.stat(follow_symlinks=False).st_size))
                for entry in entries
                if entry.name not in LEFT
            )
    except (OSError, ValueError):
        return ABSENT
    return digest("\0".join(f"{name}\0{what}" for name, what in listed))


LEFT = frozenset({"__pycache__", ".pytest_cache", ".git", ".testmondata", ".hypothesis", ".mypy_cache", ".ruff_cache"})
"""Names that Python and its tools leave in folders."""


@cache
def platform_value() -> str:
    """Return the digest of Python's version and options, and of the versions of all installed distributions."""
    installed = sorted(
        name
        for folder in sys.path
        if os.path.isdir(folder)
        for name in os.listdir(folder)
        if name.endswith((".dist-info", ".egg-info"))
    )
    options = (sys.flags.optimize, sys.flags.dev_mode, sys.flags.utf8_mode, *sys.warnoptions)
    return digest("\0".join((sys.version, *map(str, options), *installed)))
