"""Score the command: `PYTHONPATH=tools/reports python -m diagnosis.own [TRIALS [INSTANCES [REPETITIONS]]]`."""

from __future__ import annotations

import sys

from diagnosis.own.planted import HARMLESS, WEAKNESSES
from diagnosis.own.score import CommandTrial, rows, score, summary, write_scored


def main(sizes: list[int]) -> None:
    """Diagnose trials of each edit, write them, and print the page's rows."""
    trials: list[CommandTrial] = []
    for each in score(*sizes):
        trials.append(each)
        verdict = "right" if (not each.blames_harmless if each.beside else each.is_right) else "WRONG"
        print(f"{verdict}: {each.edit} ({each.part}), {each.instance}: {each.blamed or 'nothing'} blamed", flush=True)
    write_scored(trials)
    print("\n".join(rows(trials)))
    print("single {}, not asked {}, harmless blamed {}".format(*summary(trials)))
    if unbroken := {*WEAKNESSES, *HARMLESS} - {each.edit for each in trials}:
        print(f"broke no trial: {', '.join(sorted(unbroken))}")


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]])
