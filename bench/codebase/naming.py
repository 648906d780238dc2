"""Gives paths their names in facts: relative inside the tree, absolute outside of it. An installed file has no name."""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path

from bench.codebase.present import LEFT
from bench.codebase.watching import unwatched

INSTALLED = LEFT | {"site-packages", ".venv", ".nox", ".tox", "node_modules"}
"""Folders of a tree whose files are not part of its versions."""


class PathNames:
    """The names of paths. Each is worked out once.

    Args:
        root: The folder of the tree, as a path without symbolic links.
    """

    def __init__(self, root: Path):
        self.root = root
        prefixes = {sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")}
        self._installed = tuple(f"{os.path.realpath(prefix)}{os.sep}" for prefix in prefixes)
        self._scratch = os.path.realpath(tempfile.gettempdir()) + os.sep
        self.of = cache(self._of)
        """Returns the name of a path in facts; None if its content is not followed."""

    def folders_of(self, package: str) -> list[str]:
        """Return the folders of the tree in which Python looks for the modules of a package."""
        searched = getattr(sys.modules.get(package), "__path__", ())
        return [path for folder in searched if (path := self.of(folder)) and not path.startswith(os.sep)]

    def _of(self, path: str) -> str | None:
        with unwatched():
            return self._named(path)

    def _named(self, path: str) -> str | None:
        if not os.path.isabs(path):
            if path.startswith("<"):
                return None
            path = os.path.abspath(path)
        lexical = os.path.relpath(path, self.root)
        if not lexical.startswith(".."):  # a link in it may come to lead elsewhere
            return None if INSTALLED & set(lexical.split(os.sep)) else lexical
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        inside = os.path.relpath(real, self.root)
        if not inside.startswith(".."):
            return None if INSTALLED & set(inside.split(os.sep)) else inside
        return None if f"{real}{os.sep}".startswith((*self._installed, self._scratch)) or "site-packages" in real else real
