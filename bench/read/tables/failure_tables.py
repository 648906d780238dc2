"""Tables of the cost of one failure: its first round, its price, and the first pass without a fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import NamedTuple

import pandas as pd

from bench.read.analysis import statistics
from bench.read.analysis.arms import Arm, Arms, control_of, excess_tokens
from bench.read.analysis.faults import IMPACTS
from bench.read.analysis.frames import Run
from bench.read.analysis.metrics import FIRST_PASS, FIRST_ROUND, MIN_PRICED_TRIALS, PRICE, RETRY_TOKENS, Metric
from bench.read.analysis.statistics import Mean
from bench.read.render.cells import NOT_MEASURED, BoundedNumber, Cell, Estimate
from bench.read.render.labels import arm_columns, condition_columns, each_arm
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.render.table_part import TablePart
from bench.record.config import FAULT_FREE


def failure_tables(run: Run, arms: Arms) -> list[Table]:
    """Return the tables of what a failure costs. Those of its first round and its price are left out if no fault was
    delivered."""
    struck = [arm for arm in each_arm(arms) if arm.condition.plan != FAULT_FREE and arm.usable["faults_delivered"].any()]
    tables = [first_round(run, struck), price(run, arms, struck)] if struck else []
    return [*tables, first_pass(run, arms), differences(run, arms)]


def first_round(run: Run, struck: Sequence[Arm]) -> Table:
    """Return a table of the cost of the first round after each noticed fault. `struck` are the arms with a delivered fault."""

    impacts = run.faults.loc[run.faults["delivered"], ["trial", "impact"]]

    @cache
    def count_by_impact(arm: Arm) -> Counter[str]:
        return Counter(impacts.loc[impacts["trial"].isin(arm.usable["trial"]), "impact"].tolist())

    def count_of(impact: str) -> TableColumn[Arm]:
        return TableColumn(impact.capitalize(), lambda arm: count_by_impact(arm)[impact])

    columns = (
        *arm_columns(run),
        TableColumn("Delivered", lambda arm: count_by_impact(arm).total()),
        *map(count_of, IMPACTS),
        TableColumn("N", lambda arm: arm.mean(FIRST_ROUND.tokens.name).n),
        _mean(FIRST_ROUND.tokens),
        _mean(FIRST_ROUND.seconds),
        _mean(FIRST_ROUND.calls),
    )
    notes = (
        "first round: the calls that a noticed fault caused, up to the next verdict on what it struck, good or bad; mean ± sd "
        "[95% interval] of the N trials with a first round; seconds: while one of its calls was in flight",
        "effective: without the fault, what it struck would have been accepted; masked: it would have been rejected anyway, "
        "so the round would have happened without the fault too; undetermined: neither the trial nor its control shows which",
    )
    return table_of("first_round", "What one failure costs: the first round after it", columns, struck, notes)


def _mean(metric: Metric, with_n: bool = False) -> TableColumn[Arm]:
    """Return a column with the arms' means of a metric."""
    return TableColumn(metric.title, lambda arm: Estimate(arm.mean(metric.name), metric.digits, with_n))


def price(run: Run, arms: Arms, struck: Sequence[Arm]) -> Table:
    """Return a table of the cost of all rounds after effective faults, also split by whether all damaged outputs were accepted
    again. `struck` are the arms with a delivered fault."""
    recoveries = run.recoveries.loc[run.recoveries["effective"].gt(0), ["trial", "accepted_again"]]
    all_accepted_again = recoveries.groupby("trial")["accepted_again"].all()

    def effective(arm: Arm) -> Estimate:
        return Estimate(_part_of(arm, arm.usable[PRICE.tokens.name].notna()).mean(FIRST_ROUND.tokens.name), with_n=True)

    def price_if(accepted_again: bool) -> Callable[[Arm], Cell]:
        trials = all_accepted_again[all_accepted_again.eq(accepted_again)].index
        return lambda arm: _price(_part_of(arm, arm.usable["trial"].isin(trials)), PRICE.tokens)

    def price_column(metric: Metric) -> TableColumn[Arm]:
        return TableColumn(metric.title, lambda arm: _price(arm, metric))

    def excess(arm: Arm) -> Estimate:
        return Estimate(excess_tokens(control_of(arms, arm), arm), with_n=True)

    has_controls = any(control_of(arms, arm) for arm in struck)
    columns = (
        *arm_columns(run),
        TableColumn(FIRST_ROUND.tokens.title, effective),
        *map(price_column, PRICE.shown),
        TableColumn("Accepted again, tokens", price_if(True)),
        TableColumn("Not accepted again, tokens", price_if(False)),
        *([TableColumn("Paired excess tokens, both answered", excess)] if has_controls else []),
        TableColumn("Retry share of tokens", _retry_share),
    )
    notes = (
        "first round: over the trials with an effective fault alone",
        "price: all calls after a noticed effective fault, until all that it struck or invalidated is accepted again, or the "
        "trial ends; for several such faults in a trial, the total divided by their number; not measured under "
        f"{MIN_PRICED_TRIALS} trials; mean ± sd [95% interval], N",
        "accepted again: everything that the faults struck; if not, the trial gave up, and this is the price of giving up",
        *([EXCESS_NOTE] if has_controls else []),
        "retry share: retry tokens / all tokens, over all trials that did not end in an error, with its 95% interval",
    )
    return table_of("price", "The price of a failure that mattered", columns, struck, notes)


EXCESS_NOTE = "paired excess: a trial's tokens less its control's, if both answered; it includes other failures"


def _retry_share(arm: Arm) -> BoundedNumber:
    """Return the share of retry tokens in all tokens of an arm."""
    retry, tokens = (dict(enumerate(arm.units(name))) for name in (RETRY_TOKENS.name, "tokens"))
    share = statistics.ratio_of_means(retry, tokens)
    return BoundedNumber.of(share, 1, percent=True)


def _price(arm: Arm, measure: Metric) -> Cell:
    """Return an arm's mean price of a failure, if at least MIN_PRICED_TRIALS trials have one."""
    mean = arm.mean(measure.name)
    return Estimate(mean, measure.digits, with_n=True) if mean.n >= MIN_PRICED_TRIALS else f"{NOT_MEASURED} (N={mean.n})"


def _part_of(arm: Arm, is_chosen: pd.Series[bool]) -> Arm:
    """Return the arm with only the chosen trials among its usable trials."""
    return replace(arm, usable=arm.usable[is_chosen])


def first_pass(run: Run, arms: Arms) -> Table:
    """Return a table of the tokens, seconds and calls that each architecture takes when nothing fails."""
    fault_free = [arm for arm in each_arm(arms) if arm.condition.plan == FAULT_FREE]
    columns = (*arm_columns(run), *(_mean(metric, with_n=True) for metric in FIRST_PASS.shown))
    notes = (
        "first pass: the calls that no rejection and no loss caused; trials that gave up before every subtask was asked for "
        "are left out; mean ± sd [95% interval], N",
    )
    title = "The first pass: what the structure costs when nothing fails"
    return table_of("first_pass", title, columns, fault_free or each_arm(arms), notes)


COMPARED_MEASURES = (FIRST_ROUND.tokens, FIRST_ROUND.seconds, PRICE.tokens, FIRST_PASS.tokens, FIRST_PASS.seconds)


def differences(run: Run, arms: Arms) -> Table:
    """Return a table of the paired differences of every two architectures in what a failure costs and in the first pass."""

    def shown(row: ArmsByMeasure) -> Cell:
        enough = row.measure not in PRICE or row.difference.n >= MIN_PRICED_TRIALS
        return Estimate(row.difference, row.measure.digits) if enough else NOT_MEASURED

    columns = (
        *(column.of(lambda row: row.first.condition) for column in condition_columns(run)),
        TableColumn[ArmsByMeasure]("Difference", lambda row: f"{row.second.architecture} − {row.first.architecture}"),
        TableColumn[ArmsByMeasure]("Measure", lambda row: row.measure.title),
        TableColumn[ArmsByMeasure]("N", lambda row: row.difference.n),
        TableColumn[ArmsByMeasure]("Mean", shown),
    )
    rows = [
        ArmsByMeasure(first, second, measure, second.minus(first, measure.name).difference)
        for condition, by_architecture in arms.items()
        for first, second in combinations(by_architecture.values(), 2)
        for measure in COMPARED_MEASURES
        if measure in FIRST_PASS or condition.plan != FAULT_FREE
    ]
    notes = (
        "over the N pairs in which both trials have the measure; mean ± sd of the differences [95% interval of their mean]",
        f"a price is compared if it has at least {MIN_PRICED_TRIALS} pairs",
    )
    return table_of("failure_differences", "Paired differences in what a failure costs", columns, rows, notes)


class ArmsByMeasure(NamedTuple):
    """Two arms, compared in one measure. `difference` is the second arm's value minus the first arm's, over pairs of trials."""

    first: Arm
    second: Arm
    measure: Metric
    difference: Mean


PARTS = (TablePart("failure", lambda of: failure_tables(of.run, of.arms), "failure"),)
