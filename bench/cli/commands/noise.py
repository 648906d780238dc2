"""The command `bench more noise`: how far the scores of two runs of one system differ by chance, computed from a file of
graded trials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated

import typer

from bench.cli.authoring.tables import CellValue, FileRow, read_table
from bench.cli.terminal import Terminal
from bench.common.errors import ResultsError, one_line
from bench.elsewhere.reading import recorded_run
from bench.elsewhere.trials import MARK

TASK_COLUMNS = ("task", "task_id", "instance", "instance_id", "question_id", "id")
OUTCOME_COLUMNS = ("solved", "resolved", "passed", "success", "correct", "reward", "score")
OUTCOMES = {"1": True, "1.0": True, "true": True, "yes": True, "0": False, "0.0": False, "false": False, "no": False}
MIN_TRIALS = 2
"""The fewest trials of a task from which the difference between two trials can be estimated."""
out = Terminal()


def noise(
    file: Annotated[
        Path, typer.Argument(help="A table (.csv, .tsv, .jsonl) with a row for each trial, or a file of graded trials.")
    ],
    difference: Annotated[float, typer.Option(min=0.001, max=0.999, help="The difference of two scores to find.")] = 0.05,
    task: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the task's name.")] = None,
    outcome: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the outcome: 0 or 1.")] = None,
) -> None:
    """Measure how far two runs of one system differ by chance.

    The command also says how many tasks are needed to find a difference of two scores. Each task needs two trials of the same
    system. The trials of a task are compared only with each other.

    For example: bench more noise trials.csv --difference 0.03
    """
    for line in noise_lines(outcomes_of(file, task, outcome), difference):
        out.print(line)
    out.print(f"These trials were {MARK}.")


def outcomes_of(path: Path, task: str | None = None, outcome: str | None = None) -> Mapping[str, Sequence[bool]]:
    """Return the outcomes of each task.

    Args:
        path: A table, or a file of graded trials.
        task: The column of the task's name; None means the first column in TASK_COLUMNS.
        outcome: The column of the outcome; None means the first column in OUTCOME_COLUMNS.

    Raises:
        PackError: The table cannot be read.
        ResultsError: A column is missing, or an outcome is not 0 or 1. The line says where.
    """
    outcomes: dict[str, list[bool]] = {}
    if path.suffix.lower() in (".csv", ".tsv", ".jsonl", ".ndjson"):
        rows = read_table(path)
        for row in rows:
            name = row.fields[_column(row, task, TASK_COLUMNS, "--task")]
            value = row.fields[_column(row, outcome, OUTCOME_COLUMNS, "--outcome")]
            outcomes.setdefault(str(name), []).append(_outcome(row.at, value))
        return outcomes
    for trial in recorded_run(path).trials:
        if trial.solved is not None:
            outcomes.setdefault(trial.task, []).append(trial.solved)
    if not outcomes:
        raise ResultsError(f"{path}: says of no trial whether it was solved")
    return outcomes


def noise_lines(outcomes: Mapping[str, Sequence[bool]], difference: float) -> Sequence[str]:
    """Return the lines about chance differences. Raises ResultsError if no task has two trials."""
    # Here, because it imports numpy, for which no other command should wait.
    from scipy import special  # noqa: PLC0415

    from bench.read.analysis.statistics.mcnemar import required_instances  # noqa: PLC0415

    repeated = {task: trials for task, trials in outcomes.items() if len(trials) >= MIN_TRIALS}
    if not repeated:
        raise ResultsError("no task has two trials, so nothing says how far two runs part; run each task twice or more")
    mixed = sum(len(set(trials)) > 1 for trials in repeated.values())
    # The mean over tasks of the unbiased variance of one trial. A run's score has this variance divided by the number of tasks.
    variance = fmean(fmean(trials) * (1 - fmean(trials)) * len(trials) / (len(trials) - 1) for trials in repeated.values())
    tasks, normal = len(repeated), float(special.ndtri(0.975))
    floor = normal * math.sqrt(2 * variance / tasks)
    score = fmean(fmean(trials) for trials in repeated.values())
    first, second = ({(task, 0): trials[place] for task, trials in repeated.items()} for place in (0, 1))
    needed = required_instances(first, second, difference)
    fewer = len(outcomes) - len(repeated)
    return [
        f"{tasks} tasks with two trials or more ({fewer} with fewer are left out), score {score:.1%}; {mixed} tasks are mixed.",
        f"Two runs of the same system with a trial of each task differ by up to {100 * floor:.1f} points in 95% of cases.",
        f"To find a difference of {100 * difference:.1f} points with 80% power takes {needed.number:,} tasks with a trial each "
        f"[{needed.low:,}, {needed.high:,}], if two systems part as often as the first two trials here."
        if needed
        else "",
    ]


def _column(row: FileRow, column_option: str | None, usual_names: Sequence[str], option: str) -> str:
    """Return the name of a column: the given name, or the first usual name. Raises ResultsError if the row lacks the column."""
    column = column_option or next((name for name in usual_names if name in row.fields), None)
    if column is None or column not in row.fields:
        known = one_line(", ".join(row.fields), 160)
        raise ResultsError(
            f"{row.at}: has no column {column_option or 'of ' + ', '.join(usual_names)}; name one with {option}; it has {known}"
        )
    return column


def _outcome(place: str, value: CellValue) -> bool:
    """Whether the value of a cell means solved. Raises ResultsError for any other value."""
    outcome = OUTCOMES.get(str(value).strip().lower())
    if outcome is None:
        raise ResultsError(f"{place}: the outcome {one_line(str(value), 40)!r} is neither 0 nor 1")
    return outcome
