"""The table that shows every measure of a condition by architecture. The paper's stand beside ours in `beside_paper`."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.arms import Arms, Condition, control_of, tokens_over
from bench.analysis.frames import Run
from bench.analysis.metrics import RETRY_TOKENS, SCORE, SOLVED, costs
from bench.render.labels import condition_label, slug
from bench.render.table import Cell, Estimate, Rate, Table
from bench.report.table_part import TablePart

UNSOLVED = (("Wrong", "wrong"), ("Gave up", "gave_up"), ("Errors", "error"))


def comparison(run: Run, arms: Arms, condition: Condition) -> Table:
    """A row for each measure, and a column for each architecture."""
    simulated = " (SIMULATED)" if run.is_simulated(condition.model) else ""
    return Table(
        name=slug("comparison", condition.scenario, condition.model, condition.plan),
        title=condition_label(run, condition),
        columns=("Measure", *(f"{name}{simulated}" for name in arms[condition])),
        rows=tuple(_rows(arms, condition)),
        notes=tuple(_notes(run, arms, condition)),
    )


def _rows(arms: Arms, condition: Condition) -> Iterator[tuple[Cell, ...]]:
    named = arms[condition].values()
    yield "Trials, errors left out", *(len(arm.usable) for arm in named)
    for metric in costs():
        yield metric.title, *(Estimate(arm.mean(metric.name), metric.digits) for arm in named)
    yield SOLVED.title, *(Rate(arm.solved()) for arm in named)
    for title, outcome in UNSOLVED:
        yield title, *(arm.count(outcome) for arm in named)
    for metric in (SCORE, RETRY_TOKENS):
        yield metric.title, *(Estimate(arm.mean(metric.name), metric.digits) for arm in named)
    if any(control_of(arms, arm) for arm in named):
        yield "Paired excess tokens", *(Estimate(tokens_over(control_of(arms, arm), arm), with_n=True) for arm in named)


def _notes(run: Run, arms: Arms, condition: Condition) -> Iterator[str]:
    yield "mean ± sd [95% interval of the mean, Student's t]; solved: k/N with Wilson's 95% interval"
    baseline = run.pack(condition.scenario).baseline
    if baseline:
        solved = f"{baseline.solved} of {baseline.of}"
        yield f"the floor: keyword rules without any model score {baseline.score:.3f} and solve {solved}"
    if any(control_of(arms, arm) for arm in arms[condition].values()):
        yield "paired excess tokens: of a trial less those of its control, by instance and repetition, where both answered"


PARTS = (TablePart("comparison", lambda of: (comparison(of.run, of.arms, condition) for condition in of.arms), "comparison"),)
