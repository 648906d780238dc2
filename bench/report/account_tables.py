"""Where the tokens went, and what a solved task costs: the ledger, the faults' receipts, our count against the provider's."""

from __future__ import annotations

from bench.analysis.arms import Arms
from bench.analysis.frames import Run
from bench.analysis.ledger import ACCOUNTS
from bench.analysis.metrics import SPENT
from bench.analysis.per_solved import per_solved
from bench.analysis.usage import OUTLIER_SHARE, OUTLIER_TOKENS, usage_ratios
from bench.render.labels import ARM, arm_cells, each_arm, model_label
from bench.render.table import Cell, Number, Spent, Table


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
