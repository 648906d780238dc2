"""What a crash does to the effects of each pattern, at full size, and real SIGKILLs beside it, into `reports/exactly_once`: 12
to 40 minutes on one core.

PYTHONPATH=tools/reports python -m exactly_once [--repetitions N] [--kills N] [--work FOLDER] [FOLDER]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from exactly_once.crashes import ROOT, as_run, matrix_of, measured
from exactly_once.kills import all_killed, read_kills, write_kills
from exactly_once.report import write
from exactly_once.sagas import sagas

KILLED_ON = 4
"""The instances on which agents are killed."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="exactly_once")
    parser.add_argument("--repetitions", type=int, default=1, help="each differs in the draws of its people alone")
    parser.add_argument("--kills", type=int, default=25, help="SIGKILLs of each pattern in each form")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "exactly_once", help="where an interrupted one goes on")
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "reports" / "exactly_once")
    asked = parser.parse_args()
    matrix, kills = matrix_of(asked.repetitions), asked.work / "kills.csv"
    files = []
    for file in measured(matrix, asked.work / "trials"):
        print(file.stem, flush=True)
        files.append(file)
    if not kills.exists():
        write_kills(kills, all_killed(matrix_of(1, KILLED_ON), asked.kills))
    with tempfile.TemporaryDirectory() as name:
        write(asked.folder, as_run(matrix, files), read_kills(kills), sagas(Path(name) / "run"))


if __name__ == "__main__":
    main()
