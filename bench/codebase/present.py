"""How things are now: the present value of each fact that an execution may have relied on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from bench.codebase.record import ABSENT, Fact
from bench.codebase.units import Module, digest, parse

LARGEST = 8 * 2**20
"""Bytes; of a larger file, size and time of change are its version."""


class Present:
    """The present values of facts in one tree.

    Args:
        root: The folder of the tree; names of files in it are relative to it.
        search: The folders in it that modules are imported from.
    """

    def __init__(self, root: Path, environment: dict[str, str] | None = None):
        self.root = root
        self.environment = dict(os.environ) if environment is None else environment
        self._modules: dict[str, Module | None] = {}

    def stale(self, facts: Iterable[Fact]) -> set[Fact]:
        """The facts that hold no more."""
        return {fact for fact in facts if self.value(fact.kind, fact.name) != fact.value}

    def value(self, kind: str, name: str) -> str:
        """What a fact of this kind and name would say now."""
        if kind in ("body", "skeleton"):
            path, _, function = name.partition("::")
            module = self.module(path)
            if module is None:
                return ABSENT
            return module.bodies.get(function, ABSENT) if kind == "body" else module.skeleton
        if kind == "file":
            return file_value(self.root / name)
        if kind == "listing":
            return listing_value(self.root / name)
        if kind == "name":
            return self._status_of(name)
        if kind == "environment":
            return self.variable(name)
        return platform_value()

    def module(self, path: str) -> Module | None:
        """A file of the tree, parsed; None where there is none."""
        if path not in self._modules:
            try:
                self._modules[path] = parse((self.root / path).read_bytes())
            except OSError:
                self._modules[path] = None
        return self._modules[path]

    def variable(self, name: str) -> str:
        """The digest of a variable of the environment, or of all of them where the name is "*"."""
        if name == "*":
            return digest("\0".join(f"{key}={self.environment[key]}" for key in sorted(self.environment) if key not in IGNORED))
        return digest(self.environment[name]) if name in self.environment else ABSENT

    def _status_of(self, name: str) -> str:
        """The file of the tree that a module's name leads to. The name has the folders behind it that are searched."""
        module, _, search = name.partition(" in ")
        for folder in search.split(":"):
            base = os.path.join(self.root, folder, *module.split("."))
            for path in (os.path.join(base, "__init__.py"), f"{base}.py"):
                if os.path.isfile(path):
                    return os.path.relpath(path, self.root)
            if os.path.isdir(base):
                return os.path.relpath(base, self.root)
        return ABSENT


IGNORED = frozenset({"PYTEST_CURRENT_TEST", "PYTEST_VERSION", "_", "SHLVL", "PWD", "OLDPWD", "COLUMNS", "LINES"})
"""Variables that differ from call to call and that pytest or the shell sets."""


def file_value(path: str | Path) -> str:
    """The version of a file: the digest of its content, "folder" or "absent"."""
    try:
        status = os.stat(path)
        if os.path.isdir(path):
            return "folder"
        if not os.path.isfile(path):
            return "special"
        if status.st_size > LARGEST:
            return f"{status.st_size}:{status.st_mtime_ns}"
        with open(path, "rb") as file:
            return digest(file.read())
    except OSError:
        return ABSENT


def listing_value(path: str | Path) -> str:
    """The version of a folder's listing: the digest of its names, without what Python and its tools leave there."""
    try:
        return digest("\0".join(sorted(name for name in os.listdir(path) if name not in LEFT)))
    except OSError:
        return ABSENT


LEFT = frozenset({"__pycache__", ".pytest_cache", ".git", ".testmondata", ".hypothesis", ".mypy_cache", ".ruff_cache"})


@cache
def platform_value() -> str:
    """The digest of Python's version and of all installed distributions' versions."""
    installed = sorted(
        name
        for folder in sys.path
        if os.path.isdir(folder)
        for name in os.listdir(folder)
        if name.endswith((".dist-info", ".egg-info"))
    )
    return digest("\0".join((sys.version, *installed)))
