"""The table that shows every measure of a condition by architecture. The paper's stand beside ours in `beside_paper`."""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.arms import Arm, Arms, Condition, control_of, tokens_over
from bench.analysis.frames import Run
from bench.analysis.metrics import RETRY_TOKENS, SCORE, SOLVED, Metric, costs
from bench.render.labels import condition_label, slug
from bench.render.table import Estimate, Rate, Table, TableColumn, table_of
from bench.report.table_part import TablePart


def comparison(run: Run, arms: Arms, condition: Condition) -> Table:
    """A row for each measure, and a column for each architecture."""
    simulated = " (SIMULATED)" if run.is_simulated(condition.model) else ""
    architectures = (
        TableColumn[TableColumn[Arm]](f"{name}{simulated}", lambda measure, arm=arm: measure.cell(arm))  # type: ignore[misc]
        for name, arm in arms[condition].items()
    )
    return table_of(
        name=slug("comparison", condition.scenario, condition.model, condition.plan),
        title=condition_label(run, condition),
        columns=(TableColumn[TableColumn[Arm]]("Measure", lambda measure: measure.title), *architectures),
        items=_measures(arms, condition),
        notes=_notes(run, arms, condition),
    )


def _measures(arms: Arms, condition: Condition) -> Iterator[TableColumn[Arm]]:
    def mean(metric: Metric) -> TableColumn[Arm]:
        return TableColumn(metric.title, lambda arm: Estimate(arm.mean(metric.name), metric.digits))

    yield TableColumn("Trials, errors left out", lambda arm: len(arm.usable))
    yield from map(mean, costs())
    yield TableColumn(SOLVED.title, lambda arm: Rate(arm.solved()))
    yield TableColumn("Wrong", lambda arm: arm.count("wrong"))
    yield TableColumn("Gave up", lambda arm: arm.count("gave_up"))
    yield TableColumn("Errors", lambda arm: arm.count("error"))
    yield from map(mean, (SCORE, RETRY_TOKENS))
    if any(control_of(arms, arm) for arm in arms[condition].values()):
        excess = "Paired excess tokens"
        yield TableColumn(excess, lambda arm: Estimate(tokens_over(control_of(arms, arm), arm), with_n=True))


def _notes(run: Run, arms: Arms, condition: Condition) -> Iterator[str]:
    yield "mean ± sd [95% interval of the mean, Student's t]; solved: k/N with Wilson's 95% interval"
    baseline = run.pack(condition.scenario).baseline
    if baseline:
        solved = f"{baseline.solved} of {baseline.of}"
        yield f"the floor: keyword rules without any model score {baseline.score:.3f} and solve {solved}"
    if any(control_of(arms, arm) for arm in arms[condition].values()):
        yield "paired excess tokens: of a trial less those of its control, by instance and repetition, where both answered"


PARTS = (TablePart("comparison", lambda of: (comparison(of.run, of.arms, condition) for condition in of.arms), "comparison"),)
