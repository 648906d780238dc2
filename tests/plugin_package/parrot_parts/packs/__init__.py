"""The packs that this package brings, each a folder beside this file."""

from pathlib import Path

from bench.run.packs.packaged import PacksPart

PART = PacksPart("parrots", folder=Path(__file__).parent)
