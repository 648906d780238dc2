"""Where things lie in a checkout, from the folder in which a command is run."""

from __future__ import annotations

from pathlib import Path

RESULTS, REPORTS, CONFIGS = Path("results"), Path("reports"), Path("configs")
PACKS = [Path("scenarios")]


def folder_of(run: str) -> Path:
    """The folder of a run, which is named by it or by its name under results/."""
    return Path(run) if Path(run).is_dir() else RESULTS / run
