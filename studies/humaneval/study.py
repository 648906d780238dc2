"""HumanEval: the share of problems solved beside the share that a model's makers publish, and why the others failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes

from bench.common.errors import ResultsError
from bench.read.analysis.arms import Arm, arms_of
from bench.read.analysis.frames import Run
from bench.read.render.cells import Rate
from bench.read.render.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    PURPLE,
    SKY,
    VERMILION,
    YELLOW,
    Look,
    Picture,
    blank,
    finish,
    legend_of,
)
from bench.read.render.labels import arm_columns, each_arm, model_label, slug
from bench.read.render.table import Table, TableColumn, table_of
from bench.record.config import FAULT_FREE

from ..by_model import by_model

PROBLEMS = 164
PACK, ONE_CALL = "humaneval", "humaneval:one_call"
GRADED = {
    "no function": "no code",
    **{name: name for name in ("syntax", "exception", "time limit", "wrong value")},
}
"""The grader's note on a wrong answer, up to the colon -> the category of its failure."""
REJECTED = {
    "cut_off": "cut off",
    **dict.fromkeys(("missing_field", "form", "vocabulary"), "no code"),
    **dict.fromkeys(("content", "insufficient"), "refused"),
}
"""Kind of the last rejected reply of a trial that gave up on code -> the category of its failure."""
WORDS_ALONE = ("plan", "review")
"""Subtasks whose outputs hold no code."""
ELSEWHERE = "plan or review"
UNTOLD = "not separable here"
LOOKS: Mapping[str, Look] = {
    "solved": Look(GREEN),
    "no code": Look(GREY, "////"),
    "cut off": Look(SKY, "----"),
    "syntax": Look(YELLOW, "||||"),
    "exception": Look(ORANGE, "\\" * 4),
    "time limit": Look(PURPLE, "xxxx"),
    "wrong value": Look(VERMILION, "++++"),
    "refused": Look(BLUE, "//"),
    ELSEWHERE: Look(BLACK),
    UNTOLD: Look(PALE),
}
CATEGORIES = tuple(LOOKS)[1:]


@dataclass(frozen=True)
class PublishedShare:
    """The share of the 164 problems that a model's makers say it solves, and the source."""

    rate: float
    source: str


PUBLISHED = {
    "qwen2.5-coder-1.5b-instruct": PublishedShare(0.707, "arXiv 2409.12186, as a third party lists it"),
    "qwen2.5-coder-0.5b-instruct": PublishedShare(0.616, "arXiv 2409.12186, as a third party lists it"),
}


@dataclass(frozen=True, eq=False)
class Solving:
    """One arm. `ended`: "solved" or the category of failure, for each trial that did not end in an error."""

    arm: Arm
    ended: pd.Series[str]

    @property
    def model(self) -> str:
        return self.arm.condition.model

    @cached_property
    def counts(self) -> Counter[str]:
        return Counter(self.ended.tolist())

    def problems(self, category: str) -> list[str]:
        """Return the problems' names. A problem that failed so in several repetitions appears once, with their number."""
        having = Counter(self.arm.usable.loc[self.ended.eq(category).to_numpy(), "instance"].tolist())
        return [f"{name} (x{count})" if count > 1 else name for name, count in sorted(having.items())]


def solving(run: Run) -> list[Solving]:
    """Return the results by arm. Raise ResultsError if the run has no trial of the pack humaneval."""
    last = _last_rejected(run)
    solvings = [
        Solving(arm, _ended(arm.usable, last))
        for arm in each_arm(arms_of(run))
        if arm.condition.scenario.partition(":")[0] == PACK
    ]
    if not solvings:
        raise ResultsError("needs trials of the pack humaneval, in one of its variants")
    return solvings


def _last_rejected(run: Run) -> Mapping[str, tuple[str, str]]:
    """Return trial -> the subtask and the kind of its last rejected reply."""
    rejected = run.replies[run.replies["kind"].ne("")]
    reasons = zip(rejected["subtask"].tolist(), rejected["kind"].tolist(), strict=True)
    return dict(zip(rejected["trial"].tolist(), reasons, strict=True))


def _ended(trials: pd.DataFrame, last: Mapping[str, tuple[str, str]]) -> pd.Series[str]:
    rows = zip(trials["trial"].tolist(), trials["outcome"].tolist(), trials["note"].tolist(), strict=True)
    return pd.Series([category_of(outcome, note, *last.get(trial, ("", ""))) for trial, outcome, note in rows], dtype="str")


def category_of(outcome: str, note: str, subtask: str, rejected: str) -> str:
    """Return the category from a trial's outcome, its grader's note, and subtask and kind of its last rejected reply."""
    if outcome == "solved":
        return outcome
    if outcome == "wrong":
        return GRADED.get(note.partition(":")[0], UNTOLD)
    return ELSEWHERE if subtask in WORDS_ALONE else REJECTED.get(rejected, UNTOLD)


# Tables and figures

NOTES = (
    "solved: k/N of the trials that did not end in an error, with Wilson's 95% interval, clustered by problem where there are "
    "several repetitions; a trial that gave up solved nothing",
    "cut off: the reply breaks off in its code; no code: no code block was recognised, or none defines the function; refused: "
    "every attempt failed the prompt's own examples; syntax, exception, time limit, wrong value: what ended the hidden tests; "
    f"{ELSEWHERE}: the trial gave up on a text output, right code or not; {UNTOLD}: the log does not say",
    "published: shown for a real model in one call without a fault; its makers ran the unquantized model with their harness "
    "and prompt. The problems are the same, so an interval for random problems compares nothing: this is the least number "
    "that one solved and the other did not. The makers do not publish which, so no more can be said",
    *(f"{model}: {rate.rate:.1%} by {rate.source}" for model, rate in PUBLISHED.items()),
)


def tables(run: Run) -> Iterator[Table]:
    solvings = solving(run)

    def ended(category: str) -> TableColumn[Solving]:
        return TableColumn(category.capitalize(), lambda solving: str(solving.counts[category]))

    columns = (
        *(column.of(lambda solving: solving.arm) for column in arm_columns(run)),
        TableColumn[Solving]("Problems", lambda solving: str(solving.arm.trials["instance"].nunique())),
        TableColumn[Solving]("Solved", lambda solving: Rate(solving.arm.solved())),
        TableColumn[Solving]("Published", lambda solving: _published(run, solving)),
        *map(ended, CATEGORIES),
        TableColumn[Solving]("Errors", lambda solving: str(solving.arm.count("error"))),
    )
    yield table_of("study-humaneval", "HumanEval: solved, and why not", columns, solvings, NOTES)
    whys = (
        *(column.of(lambda row: row.arm) for column in arm_columns(run)),
        TableColumn[Unsolved]("Why", lambda row: row.why),
        TableColumn[Unsolved]("Problems", lambda row: row.problems),
    )
    if named := [row for solved_arm in solvings for row in _named(solved_arm)]:
        yield table_of("study-humaneval-problems", "HumanEval: each problem that was not solved", whys, named)


class Unsolved(NamedTuple):
    """Problems that were not solved in an arm, all for the same reason."""

    arm: Arm
    why: str
    problems: str


def _published(run: Run, solved_arm: Solving) -> str:
    condition, solved = solved_arm.arm.condition, solved_arm.arm.solved()
    asked = run.parameters_of(solved_arm.model).model or solved_arm.model
    known = PUBLISHED.get(asked)
    if known is None or condition.scenario != ONE_CALL or condition.plan != FAULT_FREE or run.is_simulated(solved_arm.model):
        return "–"
    if solved.n != PROBLEMS:
        return f"{known.rate:.1%} of all {PROBLEMS}"
    theirs = round(known.rate * PROBLEMS)
    differ = f"at least {abs(theirs - solved.k)} differ" if theirs != solved.k else "as many as ours"
    return f"{known.rate:.1%}, {theirs} of the same {PROBLEMS}: {differ}"


def _named(solved_arm: Solving) -> Iterator[Unsolved]:
    for category in CATEGORIES:
        if problems := solved_arm.problems(category):
            yield Unsolved(solved_arm.arm, category, ", ".join(problems))
    errors = solved_arm.arm.trials[solved_arm.arm.trials["outcome"].eq("error")]
    for instance, reason in zip(errors["instance"].tolist(), errors["reason"].tolist(), strict=True):
        yield Unsolved(solved_arm.arm, f"error: {reason}", instance)


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure for each model: a bar for each arm, its trials by how they ended."""
    for model, of_model in by_model(run, solving(run)):
        figure = blank(7.5, 1.6 + 0.45 * len(of_model))
        _bars(figure.subplots(), of_model)
        legend_of(
            figure, {name: look for name, look in LOOKS.items() if any(solved_arm.counts[name] for solved_arm in of_model)}
        )
        title = f"HumanEval: solved, and why not, {model_label(run, model)}"
        yield finish(
            figure, slug("study", "humaneval", model), title, f"{title}. Trials by how they ended; errors are left out."
        )


def _bars(ax: Axes, solvings: Sequence[Solving]) -> None:
    for place, solved_arm in enumerate(solvings):
        left = 0
        for name, look in LOOKS.items():
            width = solved_arm.counts[name]
            ax.barh(place, width, 0.7, left, color=look.colour, hatch=look.hatch, edgecolor="white", lw=0.4)
            left += width
    conditions = [(solved_arm.arm.condition, solved_arm.arm.architecture) for solved_arm in solvings]
    ax.set_yticks(range(len(solvings)), [f"{where.scenario}, {name}\n{where.plan}" for where, name in conditions])
    ax.invert_yaxis()
    ax.set_xlabel("trials")
