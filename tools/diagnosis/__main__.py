"""Make the table of docs/diagnosing.md: `PYTHONPATH=tools python -m diagnosis [TRIALS [FIRST [LAST]]]`, half an hour.

FIRST and LAST number the rows that are made, from 0; that with the harmless edit is made where no LAST is given.
"""

from __future__ import annotations

import sys

from diagnosis.score import TRIALS, matrix_of, scored
from diagnosis.weaknesses import DOUBLE, HARMLESS, SINGLE, parts_of


def main(most: int, first: int = 0, last: int | None = None) -> None:
    """Print the rows as they are made."""
    matrix = matrix_of()
    print("| planted | in | trials | named exactly | always the proposer | the last rejected |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    for name, plants in [*SINGLE.items(), *DOUBLE.items()][first:last]:
        planted = parts_of(plants)
        trials = list(scored(matrix, plants, planted, most))
        exact = sum(each.is_exact for each in trials)
        proposer = sum(planted == {"proposer"} for _ in trials)
        last = sum(each.last_rejected == planted for each in trials)
        print(f"| {name} | {' and '.join(sorted(planted))} | {len(trials)} | {exact} | {proposer} | {last} |", flush=True)
    for name, plants in HARMLESS.items() if last is None else ():
        trials = list(scored(matrix, plants, parts_of(plants[:1]), most))
        blamed = sum(bool(each.diagnosis.blamed & parts_of(plants[1:])) for each in trials)
        print(f"{name}: the harmless part is blamed in {blamed} of {len(trials)}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or [TRIALS]))
