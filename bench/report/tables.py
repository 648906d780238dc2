"""Which tables a report has, and what stands in them."""

from __future__ import annotations

from collections.abc import Sequence

from bench.analysis.arms import Arms
from bench.analysis.claims.published import Published
from bench.analysis.claims.verdicts import Judged, Judgement
from bench.analysis.frames import Run
from bench.analysis.ledger import ACCOUNTS
from bench.analysis.metrics import SPENT
from bench.analysis.per_solved import per_solved
from bench.analysis.usage import OUTLIER_SHARE, OUTLIER_TOKENS, usage_ratios
from bench.render.labels import ARM, arm_cells, each_arm, model_label
from bench.render.limits import with_limits
from bench.render.table import Cell, Number, Spent, Table
from bench.report.break_even import break_even_tables
from bench.report.claims_table import claims_tables, other_claims
from bench.report.comparison import comparison
from bench.report.difference_tables import differences, models, noise_floor
from bench.report.failure_tables import failure_tables
from bench.report.instance_tables import by_instance, solved_differences
from bench.report.latency_tables import latency_tables
from bench.report.natural_table import natural_table
from bench.report.outcome_tables import outcomes, reruns
from bench.report.recovery_rates import recovery_tables
from bench.report.systems_table import systems
from bench.report.world_tables import world_tables
from bench.studies import sensitivity
from bench.studies.registry import study_tables


def all_tables(
    run: Run, arms: Arms, published: Published, judgements: Sequence[Judgement], others: Sequence[Judged] = ()
) -> list[Table]:
    """The verdicts first, where there are any, those of `others` after the paper's; below each table what its intervals do not
    hold."""
    tables = [
        *failure_tables(run, arms, published),
        *recovery_tables(run, arms),
        *break_even_tables(run, arms, published),
        *(comparison(run, arms, condition, published) for condition in arms),
        outcomes(run, arms),
        *reruns(run, arms),
        *systems(run, arms),
        *world_tables(run, arms),
        differences(run, arms),
        noise_floor(run, arms),
        *solved_differences(run, arms),
        *([models(run, arms)] if len(run.names("model")) > 1 else []),
        spent_by_solved(run, arms),
        ledger(run, arms),
        fault_receipts(run, arms),
        natural_table(run, published),
        usage(run),
        *latency_tables(run, published),
        *by_instance(run, arms),
        *study_tables(run),
    ]
    verdicts = (*claims_tables(run, judgements, published), *sensitivity.tables(run, published, judgements))
    return [*verdicts, *(other_claims(run, one) for one in others), *map(with_limits, tables)]


def spent_by_solved(run: Run, arms: Arms) -> Table:
    """What an arm spent in all, by what it solved."""
    rows: list[tuple[Cell, ...]] = []
    for arm in each_arm(arms):
        spent = [Spent(per_solved(arm.trials, measure.name), measure.digits) for measure in SPENT]
        rows.append((*arm_cells(run, arm), len(arm.graded), arm.count("solved"), *spent))
    return Table(
        name="per_solved",
        title="Spent per solved task",
        columns=(
            *(*ARM, "Trials", "Solved"),
            *(f"{measure.title} per solved" for measure in SPENT),
        ),
        rows=tuple(rows),
        notes=(
            "all that the arm's trials spent, errors and failures among them, by those solved, with the 95% interval of "
            "that ratio over the trials, which is too narrow where all were solved, since then it knows of no other share",
            "cost: the provider's token counts, ours where it told none, at the config's prices; unknown where it has none; "
            "a reply that several arms were given is charged to each of them",
        ),
    )


def ledger(run: Run, arms: Arms) -> Table:
    """Where the tokens stand: sums over an arm's trials, errors among them, for they were paid as well."""
    rows: list[tuple[Cell, ...]] = []
    for arm in each_arm(arms):
        total = int(arm.trials["tokens"].sum())
        sums = [int(arm.trials[account].sum()) for account in ACCOUNTS]
        cells = [cell for one in sums for cell in (one, Number(one / total if total else None, 1, percent=True))]
        rows.append((*arm_cells(run, arm), len(arm.trials), total, *cells))
    return Table(
        name="ledger",
        title="Ledger: every token in one account",
        columns=(*ARM, "Trials", "Tokens", *(name for account in ACCOUNTS for name in (account, f"{account} %"))),
        rows=tuple(rows),
        notes=("sums over all trials of the arm, those that ended in an error among them",),
    )


def fault_receipts(run: Run, arms: Arms) -> Table:
    """The receipts of the faults."""
    stages = ("planned", "delivered", "not_applicable", "detected")
    impacts = ("effective", "masked", "undetermined")
    endings = ("recovered", "gave_up", "undetected", "error")
    rows: list[tuple[Cell, ...]] = []
    for arm in each_arm(arms):
        own = run.faults[run.faults["trial"].isin(set(arm.trials["trial"]))]
        if own.empty:
            continue
        staged = {stage: int(own[stage].sum()) for stage in stages}
        mattered = [int((own["impact"] == impact).sum()) for impact in impacts]
        ended = [int((own["ended"] == ending).sum()) for ending in endings]
        calls, trials = int(arm.trials["calls"].sum()), len(arm.trials)
        per_call = Number(staged["delivered"] / calls if calls else None, 3)
        per_task = Number(staged["delivered"] / trials, 3)
        rows.append((*arm_cells(run, arm), trials, calls, *staged.values(), *mattered, *ended, per_call, per_task))
    return Table(
        name="receipts",
        title="Faults and their receipts",
        columns=(
            *(*ARM, "Trials", "Calls", "Planned", "Delivered", "Not applicable", "Detected"),
            *("Effective", "Masked", "Undetermined"),
            *("Recovered", "Gave up", "Undetected", "In an error", "Delivered per call", "Delivered per task"),
        ),
        rows=tuple(rows),
        notes=(
            "every planned fault was delivered, or was not applicable because nothing was there that could carry it",
            "effective: what was struck would have been accepted undamaged; masked: it would have been rejected anyway; "
            "undetermined: neither the trial nor its control tells",
            "a call that does several subtasks' work is exposed to the faults of each",
        ),
    )


def usage(run: Run) -> Table:
    """Our tokenizer against the provider's own count."""
    rows: list[tuple[Cell, ...]] = []
    for model in run.names("model"):
        for found in usage_ratios(run.calls[run.calls["model"] == model]):
            named = ", ".join(f"{trial} call {call}" for trial, call in found.outliers[:3]) or "–"
            ratio = Number(found.ratio, 3)
            rows.append(
                (model_label(run, model), found.direction, found.calls, found.untold, ratio, len(found.outliers), named)
            )
    return Table(
        name="usage",
        title="Our count of tokens against the provider's",
        columns=(
            "Model",
            "Direction",
            "Calls compared",
            "Calls without usage",
            "Median provider/ours",
            "Outliers",
            "First outliers",
        ),
        rows=tuple(rows),
        notes=(
            f"outliers lie more than {OUTLIER_SHARE:.0%} and {OUTLIER_TOKENS} tokens off what the median ratio expects",
            "tokens of ours are cl100k_base over the texts alone, so a chat format's own tokens are not in them",
        ),
    )
