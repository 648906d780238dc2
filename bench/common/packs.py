"""The folders of packs: below the folders that a user names, in this package, and in installed packages. No pack is
imported.

A package declares its folders as entry points in the group `recovery_bench.packs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.common.errors import PackError
from bench.common.paths import PACKS, SHIPPED_PACKS
from bench.common.registry import Part, Registry

ENTRY = "scenario.py"
"""The file of a pack's code. A folder that has this file is a pack."""


@dataclass(frozen=True)
class PacksPart(Part):
    """A folder of packs. Below `folder` each pack is `NAME/scenario.py`, as below `scenarios/`."""

    folder: Path


PACKAGED = Registry("folder of packs", PacksPart, plural="packs")


def find_packs(roots: Iterable[Path]) -> dict[str, Path]:
    """Return the folder of every pack under the roots, by the pack's name. The default root also has the packs in this
    package and in installed packages, except for packs with a name that is already there. Raises PackError if two packs
    under the roots share a name."""
    roots = list(roots)
    folders = _packs_in(roots)
    return _packs_in([part.folder for part in PACKAGED]) | _packs_in([SHIPPED_PACKS]) | folders if roots == PACKS else folders


def package_of(folder: Path) -> str:
    """Return the installed package of the pack in `folder`, with its version; "" if no package has it."""
    return next((part.package for part in PACKAGED if folder.is_relative_to(part.folder)), "")


def no_packs_in(roots: Sequence[Path]) -> str:
    """Return the line for folders that contain no pack."""
    todo = "begin one with `bench new scenario NAME`, or name a folder of packs with --scenarios"
    return f"none in {', '.join(f'{root}/' for root in roots)}; {todo}"


def _packs_in(roots: Iterable[Path]) -> dict[str, Path]:
    """Return the folders of the packs under the roots. Raises PackError if two packs share a name."""
    folders: dict[str, Path] = {}
    for root in roots:
        for path in sorted(root.glob(f"*/{ENTRY}")):
            folder = path.parent
            if folder.name in folders and folders[folder.name].resolve() != folder.resolve():
                raise PackError(f"two packs are named '{folder.name}': {folders[folder.name]} and {folder}; rename one")
            folders[folder.name] = folder
    return folders
