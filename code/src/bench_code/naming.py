"""Gives paths their names in facts: relative inside the tree, absolute outside of it. An installed file has no name."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path

from bench_code.present import LEFT
from bench_code.watching import unwatched

INSTALLED = tuple(
    {
        os.path.realpath(folder) + os.sep
        for folder in (
            *(sys.prefix, sys.base_prefix, sys.exec_prefix, sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")),
            *(sysconfig.get_path("platlib"), site.getusersitepackages(), *site.getsitepackages()),
        )
    }
)
"""The folders of this Python and of what is installed for it, by their real places."""


class PathNames:
    """The names of paths. Each is worked out once.

    Args:
        root: The folder of the tree, as a path without symbolic links.
    """

    def __init__(self, root: Path):
        self.root = root
        inside = f"{root}{os.sep}"
        self._within = tuple(folder for folder in INSTALLED if folder.startswith(inside) and folder != inside)
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
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        for each in (os.path.normpath(path), real):  # the first may have a link in it, which may come to lead elsewhere
            inside = os.path.relpath(each, self.root)
            if not inside.startswith(".."):
                return None if LEFT & set(inside.split(os.sep)) or f"{real}{os.sep}".startswith(self._within) else inside
        return None if f"{real}{os.sep}".startswith((*INSTALLED, self._scratch)) else real
