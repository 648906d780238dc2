"""Tries what is promised, into `reports/reliability`: twenty minutes on two cores.

PYTHONPATH=tools python -m reliability [--load-only | --no-load] [--repeats N] [FOLDER]
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from reliability.guarded import all_guarded
from reliability.kept import Guarded, Taken, Tried, write
from reliability.load import CELLS, measured
from reliability.promises import all_tried
from reliability.report import page

ROOT = Path(__file__).parents[2]


def machine() -> str:
    """Its cores and the model of its processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{os.cpu_count()} cores, {next(models, 'an unnamed processor')}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="reliability")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--load-only", action="store_true", help="measure the load anew; the rest stays")
    which.add_argument("--no-load", action="store_true", help="all but the load, which stays")
    parser.add_argument("--repeats", type=int, default=3, help="of each run under load")
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "reports" / "reliability")
    asked = parser.parse_args()
    if not asked.no_load:
        write(asked.folder, Taken, list(measured(CELLS, asked.repeats)))
    if not asked.load_only:
        write(asked.folder, Tried, list(all_tried()))
        write(asked.folder, Guarded, all_guarded())
    (asked.folder / "README.md").write_text(page(asked.folder, machine()), encoding="utf-8")


if __name__ == "__main__":
    main()
