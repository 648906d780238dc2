"""The table of all measures of a condition by architecture. `beside_paper` compares them with the paper's."""

from __future__ import annotations

from collections.abc import Iterator

from bench.read.analysis.arms import Arm, Arms, Condition, control_of, excess_tokens
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import RETRY_TOKENS, SCORE, SOLVED, Metric, costs
from bench.read.render.cells import Estimate, Rate
from bench.read.render.labels import condition_label, slug
from bench.read.render.table import Table, TableColumn
from bench.read.render.table_part import TablePart


def comparison(run: Run, arms: Arms, condition: Condition) -> Table:
    """Return the table of a condition: a row for each measure, a column for each architecture."""
    by_architecture = arms[condition]

    def mean(metric: Metric) -> TableColumn[Arm]:
        return TableColumn(metric.title, lambda arm: Estimate(arm.mean(metric.name), metric.digits))

    measures: list[TableColumn[Arm]] = [
        TableColumn("Trials, errors left out", lambda arm: len(arm.usable)),
        *map(mean, costs()),
        TableColumn(SOLVED.title, lambda arm: Rate(arm.solved())),
        TableColumn("Wrong", lambda arm: arm.count("wrong")),
        TableColumn("Gave up", lambda arm: arm.count("gave_up")),
        TableColumn("Errors", lambda arm: arm.count("error")),
        *map(mean, (SCORE, RETRY_TOKENS)),
    ]
    if any(control_of(arms, arm) for arm in by_architecture.values()):
        excess = "Paired excess tokens"
        measures.append(TableColumn(excess, lambda arm: Estimate(excess_tokens(control_of(arms, arm), arm), with_n=True)))
    simulated = " (SIMULATED)" if run.is_simulated(condition.model) else ""
    return Table(
        name=slug("comparison", condition.scenario, condition.model, condition.plan),
        title=condition_label(run, condition),
        columns=("Measure", *(f"{name}{simulated}" for name in by_architecture)),
        rows=tuple((measure.title, *map(measure.cell, by_architecture.values())) for measure in measures),
        notes=tuple(_notes(run, arms, condition)),
    )


def _notes(run: Run, arms: Arms, condition: Condition) -> Iterator[str]:
    """Yield the notes below the table of a condition."""
    yield "mean ± sd [95% interval of the mean, Student's t]; solved: k/N with Wilson's 95% interval"
    baseline = run.pack(condition.scenario).baseline
    if baseline:
        solved = f"{baseline.solved} of {baseline.of}"
        yield f"the floor: keyword rules without any model score {baseline.score:.3f} and solve {solved}"
    if any(control_of(arms, arm) for arm in arms[condition].values()):
        yield "paired excess tokens: a trial's tokens less its control's (same instance and repetition), if both answered"


PARTS = (TablePart("comparison", lambda of: (comparison(of.run, of.arms, condition) for condition in of.arms), "comparison"),)
