"""Finds the present value of each fact that an execution may have relied on."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import file_digest
from pathlib import Path

from bench.common.files import opened
from bench_code.record import ABSENT, Fact
from bench_code.units import Module, digest

SHELL_VARIABLES = re.compile(
    r"_|SHLVL|PWD|OLDPWD|COLUMNS|LINES|TERM.*|SSH_.*|XDG_.*|WINDOW.*|DISPLAY|PYTEST_(CURRENT_TEST|VERSION)"
)
"""Variables that pytest or a shell sets, with values that differ from call to call."""
SURROUNDINGS = frozenset({"environment", "variables", "platform"})
"""The kinds of facts that are not of the tree."""
TOOL_FILES = frozenset({"__pycache__", ".pytest_cache", ".git", ".testmondata", ".hypothesis", ".mypy_cache", ".ruff_cache"})
"""Names that Python and its tools leave in folders."""


class Present:
    """The present values of facts in one tree.

    Args:
        root: The folder of the tree. Names of its files are relative to it.
        tree: The id of the tree in git.
        files: The mode and the content's id of each file that a step holds.
        parse: Returns the versions in a file that a step holds, by its path and its value in `files`.
        environment: The variables of the process that would run; None if it is not known. Then its surroundings hold.
    """

    def __init__(
        self,
        root: Path,
        tree: str,
        files: Mapping[str, str],
        parse: Callable[[str, str], Module | None],
        environment: Mapping[str, str] | None = None,
    ):
        self.root, self.tree, self.files, self.environment = root, tree, files, environment
        self._parse = cache(parse)
        self._known: dict[tuple[str, str], str] = {}

    def holds(self, fact: Fact) -> bool:
        """Return whether a fact has the same value as then."""
        if self.environment is None and fact.kind in SURROUNDINGS:
            return True
        key = (fact.kind, fact.name)
        if key not in self._known:
            self._known[key] = self.value(*key)
        return self._known[key] == fact.value

    def value(self, kind: str, name: str) -> str:
        """Return the present value of the fact of this kind and name."""
        if kind == "file":
            return self.files.get(name) or file_value(self.root / name)
        if kind == "folder":
            return _folder_value(self.root / name)
        if kind == "files":
            return digest("\0".join(sorted(self.files)))
        if kind == "tree":
            return digest("\0".join(f"{path} {value}" for path, value in sorted(self.files.items())))
        if kind == "variables":
            return digest(" ".join(self.variables()))
        if kind == "environment":
            variables = self.environment or {}
            return digest(variables[name]) if name in variables else ABSENT
        if kind == "platform":
            return platform_value()
        path, _, function = name.partition("::")
        if (module := self.module(path)) is None:
            return ABSENT
        if kind == "body":
            return module.bodies.get(function, ABSENT)
        return {"skeleton": module.skeleton, "helpers": module.helpers, "code": module.code}.get(kind, ABSENT)

    def fact(self, kind: str, name: str = "") -> Fact:
        """Return the fact of this kind and name, as it is now."""
        return Fact(kind, name, self.value(kind, name))

    def variables(self) -> list[str]:
        """Return the names of the variables that may change a result."""
        return sorted(name for name in self.environment or () if name.isascii() and not SHELL_VARIABLES.fullmatch(name))

    def surroundings(self) -> set[Fact]:
        """Return the facts that are not of the tree: of the variables, of Python and of the installed packages."""
        named = {self.fact("environment", name) for name in self.variables()}
        return named | {self.fact("variables"), self.fact("platform")}

    def is_held(self, path: str) -> bool:
        """Return whether a step holds a file, and not only a link to it."""
        return not self.files.get(path, "12").startswith("12")

    def module(self, path: str) -> Module | None:
        """Return a file of Python code, parsed; None if no step holds such a file."""
        return self._parse(path, self.files[path]) if path.endswith(".py") and self.is_held(path) else None


def file_value(path: Path) -> str:
    """Return a file's version: the digest of its content, or a word for what is no file."""
    try:
        with opened(path) as file:
            return file_digest(file, "sha256").hexdigest()[:20]  # type: ignore[arg-type]
    except (OSError, ValueError):
        return "no file" if os.path.lexists(path) else ABSENT


def _folder_value(path: Path) -> str:
    """Return the digest of the names in a folder, but for what tools leave there."""
    try:
        return digest(b"\0".join(sorted(map(os.fsencode, {*os.listdir(path)} - TOOL_FILES))))
    except OSError:
        return ABSENT


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
