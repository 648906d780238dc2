"""Diagnose the trials of docs/diagnosing.md anew, and print a row for each weakness.

`PYTHONPATH=tools/reports python -m diagnosis [TRIALS]`; twenty trials of each take half an hour.
"""

from __future__ import annotations

import sys

from diagnosis.score import TRIALS, WEAKNESSES, ScoredTrial, matrix_of, rows, scored, summary, write_scored


def main(most: int) -> None:
    """Diagnose so many trials of each weakness at most, write them, and print the page's rows."""
    matrix = matrix_of()
    trials: list[ScoredTrial] = []
    for weakness in WEAKNESSES:
        trials += scored(matrix, weakness, most)
        print(f"{weakness}: {sum(each.weakness == weakness for each in trials)} trials", flush=True)
    write_scored(trials)
    print("\n".join(rows(trials)))
    print("single {}, double {}, harmless blamed {}".format(*summary(trials)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else TRIALS)
