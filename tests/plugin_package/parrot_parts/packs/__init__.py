"""The packs that this package brings, each a folder beside this file."""

from pathlib import Path

from bench.common.packs import PacksPart

PART = PacksPart("parrots", folder=Path(__file__).parent)
