"""Make the table of docs/diagnosing.md: `PYTHONPATH=tools python -m diagnosis [TRIALS]`, twenty in a quarter of an hour."""

from __future__ import annotations

import sys

from diagnosis.score import TRIALS, matrix_of, row
from diagnosis.weaknesses import DOUBLE, HARMLESS, SINGLE


def main(most: int) -> None:
    """Print the rows as they are made."""
    matrix = matrix_of()
    for name, plants in {**SINGLE, **DOUBLE, **HARMLESS}.items():
        print(row(matrix, name, plants, most), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else TRIALS)
