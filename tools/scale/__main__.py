"""What a run takes on one process and on Ray's workers, and what its faults leave, into `reports/scale`.

PYTHONPATH=tools python -m scale [--full] [--only runs|faults] [FOLDER]
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pandas as pd
from scale.faults import tried
from scale.page import page
from scale.runs import Process, measured

ROOT = Path(__file__).parents[2]
SIZES = (10_000, 100_000)
FULL = (10_000, 100_000, 1_000_000)
"""Calls of a run, about."""
WORKERS = (0, 1, 2)
"""0 is one process, without Ray."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="scale")
    parser.add_argument("--full", action="store_true", help="up to a million calls: hours")
    parser.add_argument("--only", choices=("runs", "faults"), help="measure these anew; the others stay")
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "reports" / "scale")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    if asked.only != "faults":
        rows = list[Process]()
        for calls in FULL if asked.full else SIZES:
            for workers in WORKERS:
                rows += measured(calls, workers)
                pd.DataFrame(rows).to_csv(asked.folder / "processes.csv", index=False)
    if asked.only != "runs":
        pd.DataFrame(tried(ROOT)).to_csv(asked.folder / "faults.csv", index=False)
    machine = f"{os.cpu_count()} cores, load average {os.getloadavg()[2]:.1f} in the last 15 minutes"
    (asked.folder / "README.md").write_text(page(asked.folder, machine), encoding="utf-8")


if __name__ == "__main__":
    main()
