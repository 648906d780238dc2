"""The folders of packs: below the roots that a user names, in the package, and in installed packages. No pack is imported.

A package declares its folders as entry points in the group `recovery_bench.packs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.common.errors import PackError
from bench.common.paths import PACKS, SHIPPED
from bench.common.registry import Part, Registry

ENTRY = "scenario.py"
"""A pack's code."""


@dataclass(frozen=True)
class PacksPart(Part):
    """A folder of packs. `folder` holds them as `scenarios/` does: `FOLDER/NAME/scenario.py`."""

    folder: Path


PACKAGED = Registry("folder of packs", PacksPart, plural="packs")


def find_packs(roots: Iterable[Path]) -> dict[str, Path]:
    """Return name -> folder of every pack under the roots. Beside the default root stand the packs in the package and those of
    installed packages, unless it has packs of their names. Raises PackError if two packs under the roots share a name."""
    roots = list(roots)
    folders = _packs_in(roots)
    return _packs_in([part.folder for part in PACKAGED]) | _packs_in([SHIPPED]) | folders if roots == PACKS else folders


def package_of(folder: Path) -> str:
    """Return the installed package, with its version, that brings the pack in `folder`; "" if none does."""
    return next((part.package for part in PACKAGED if folder.is_relative_to(part.folder)), "")


def _packs_in(roots: Iterable[Path]) -> dict[str, Path]:
    folders: dict[str, Path] = {}
    for root in roots:
        for path in sorted(root.glob(f"*/{ENTRY}")):
            folder = path.parent
            if folder.name in folders and folders[folder.name].resolve() != folder.resolve():
                raise PackError(f"two packs are named '{folder.name}': {folders[folder.name]} and {folder}; rename one")
            folders[folder.name] = folder
    return folders
