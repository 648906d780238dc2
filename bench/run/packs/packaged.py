"""Folders of packs that installed packages bring, declared as entry points in the group `recovery_bench.packs`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.common.registry import Part, Registry


@dataclass(frozen=True)
class PacksPart(Part):
    """A folder of packs. `folder` holds them as `scenarios/` does: `FOLDER/NAME/scenario.py`."""

    folder: Path


PACKAGED = Registry("folder of packs", PacksPart, plural="packs")
