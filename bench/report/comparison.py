"""The table that shows every measure of a condition, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Iterable

from bench.analysis.arms import Arms, Condition, control_of, tokens_over
from bench.analysis.claims.published import Published
from bench.analysis.frames import Run
from bench.analysis.metrics import RETRY_TOKENS, SCORE, SOLVED, Metric, costs
from bench.render.labels import condition_label, slug
from bench.render.table import Cell, Estimate, PublishedNumber, Rate, Table
from bench.report.table_part import TablePart


def comparison(run: Run, arms: Arms, condition: Condition, published: Published) -> Table:
    """Every measure for each architecture, and beside it what the paper says, where it says something of this condition."""
    columns = _Columns(run, arms, condition, published)
    rows: list[tuple[Cell, ...]] = [columns.counts("Trials, errors left out", "usable")]
    rows += [columns.means(measure) for measure in costs()]
    rows.append(columns.solved())
    rows += [columns.counts(title, outcome) for title, outcome in _UNSOLVED]
    rows += [columns.means(measure) for measure in (SCORE, RETRY_TOKENS)]
    if any(control_of(arms, arm) for arm in arms[condition].values()):
        rows.append(columns.excess())
    return Table(
        name=slug("comparison", condition.scenario, condition.model, condition.plan),
        title=condition_label(run, condition),
        columns=columns.names,
        rows=tuple(rows),
        notes=columns.notes,
    )


_UNSOLVED = (("Wrong", "wrong"), ("Gave up", "gave_up"), ("Errors", "error"))


class _Columns:
    """The columns of one comparison: for each architecture ours, and the paper's where it has this condition."""

    def __init__(self, run: Run, arms: Arms, condition: Condition, published: Published):
        self._arms, self._all, self._condition, self._published = arms[condition], arms, condition, published
        self._table = published.table_of(condition.scenario, condition.plan)
        self._baseline = run.pack(condition.scenario).baseline
        ours = "ours, SIMULATED" if run.is_simulated(condition.model) else "ours"
        self._names = [(f"{name}, {ours}", f"{name}, paper" if self._has_paper(name) else "") for name in self._arms]

    @property
    def names(self) -> tuple[str, ...]:
        return ("Measure", *(name for pair in self._names for name in pair if name))

    @property
    def notes(self) -> tuple[str, ...]:
        notes = ["ours: mean ± sd [95% interval of the mean, Student's t]; solved: k/N with Wilson's 95% interval"]
        if self._baseline:
            solved = f"{self._baseline.solved} of {self._baseline.of}"
            notes.append(f"the floor: keyword rules without any model score {self._baseline.score:.3f} and solve {solved}")
        if any(control_of(self._all, arm) for arm in self._arms.values()):
            notes.append(
                "paired excess tokens: of a trial less those of its control, by instance and repetition, where both answered"
            )
        if self._table:
            paper = self._published.paper
            where = f"{paper.source}, Table {self._table.number}: {self._table.failure}"
            notes.append(
                f"paper: {where}; {paper.asked}, {paper.runs} runs, mean ± sd; our prompts and inputs are not the paper's"
            )
            notes += [f"paper: {self._table.note}"] if self._table.note else []
        return tuple(notes)

    def _has_paper(self, architecture: str) -> bool:
        cells = self._table.cells.values() if self._table else ()
        return any(architecture in one.values for one in cells)

    def _row(self, title: str, ours: Iterable[Cell], measure: Metric | None = None) -> tuple[Cell, ...]:
        row: list[Cell] = [title]
        for name, cell in zip(self._arms, ours, strict=True):
            row.append(cell)
            if self._has_paper(name):
                row.append(self._paper(name, measure))
        return tuple(row)

    def _paper(self, architecture: str, measure: Metric | None) -> PublishedNumber:
        column = measure.name if measure else ""
        found = self._published.value(self._condition.scenario, self._condition.plan, column, architecture)
        if measure is None or found is None:
            return PublishedNumber(None)
        return PublishedNumber(found.mean, found.sd, measure.published_digits, percent=measure.percent)

    def means(self, measure: Metric) -> tuple[Cell, ...]:
        ours = [Estimate(arm.mean(measure.name), measure.digits) for arm in self._arms.values()]
        return self._row(measure.title, ours, measure)

    def solved(self) -> tuple[Cell, ...]:
        return self._row(SOLVED.title, [Rate(arm.solved()) for arm in self._arms.values()], SOLVED)

    def counts(self, title: str, what: str) -> tuple[Cell, ...]:
        return self._row(title, [len(arm.usable) if what == "usable" else arm.count(what) for arm in self._arms.values()])

    def excess(self) -> tuple[Cell, ...]:
        each = [tokens_over(control_of(self._all, arm), arm) for arm in self._arms.values()]
        return self._row("Paired excess tokens", [Estimate(excess, with_n=True) for excess in each])


PARTS = (TablePart("comparison", lambda of: (comparison(of.run, of.arms, one, of.published) for one in of.arms), "comparison"),)
