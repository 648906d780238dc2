"""What a crash does to the effects of each pattern, at full size, into `reports/exactly_once`: half an hour on one core.

PYTHONPATH=tools python -m exactly_once [--repetitions N] [--work FOLDER] [FOLDER]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from exactly_once.crashes import ROOT, matrix_of, measured


def main() -> None:
    parser = argparse.ArgumentParser(prog="exactly_once")
    parser.add_argument("--repetitions", type=int, default=4)
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "exactly_once", help="where an interrupted one goes on")
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "reports" / "exactly_once")
    asked = parser.parse_args()
    matrix = matrix_of(asked.repetitions)
    for file in measured(matrix, asked.work):
        print(file.stem, flush=True)


if __name__ == "__main__":
    main()
