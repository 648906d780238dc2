"""Which tables a report has, and what stands in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from bench.analysis.arms import Arm, Arms
from bench.analysis.claims.published import Published
from bench.analysis.claims.verdicts import Judgement, judge_all
from bench.analysis.frames import Run
from bench.analysis.ledger import ACCOUNTS
from bench.analysis.measures import COMPARED
from bench.analysis.statistics import share_of
from bench.analysis.usage import OUTLIER_SHARE, OUTLIER_TOKENS, usage_of
from bench.render.labels import model_label
from bench.render.limits import with_limits
from bench.render.table import Cell, Estimate, Number, Rate, Table
from bench.report.claims_table import claims_table
from bench.report.comparison import comparison
from bench.report.denominators import denominators_of, ranking_warnings, reruns
from bench.report.model_tables import models, spent_by_solved
from bench.report.noise_table import noise_floor
from bench.report.systems_table import systems
from bench.studies.registry import study_tables

ARM = ("Scenario", "Model", "Fault plan", "Architecture")


def all_tables(run: Run, arms: Arms, published: Published, judgements: Sequence[Judgement] | None = None) -> list[Table]:
    """The verdicts first, made here where they are not given; below each table what its intervals do not hold."""
    judgements = judge_all(run, published, arms) if judgements is None else judgements
    tables = [
        *(comparison(run, arms, condition, published) for condition in arms),
        outcomes(run, arms),
        *reruns(run, arms),
        *systems(run, arms),
        differences(run, arms),
        noise_floor(run, arms),
        *([models(run, arms)] if len(run.names("model")) > 1 else []),
        spent_by_solved(run, arms),
        ledger(run, arms),
        injection(run, arms),
        natural_failures(run, published),
        usage(run),
        *study_tables(run),
    ]
    return [claims_table(run, judgements), *map(with_limits, tables)]


def outcomes(run: Run, arms: Arms) -> Table:
    """What became of the trials, under each way to look at errors."""
    rows: list[tuple[Cell, ...]] = []
    for arm in _each(arms):
        n, errors, rates = len(arm.trials) - arm.count("ungraded"), arm.count("error"), denominators_of(arm)
        counts = [arm.count(outcome) for outcome in ("solved", "wrong", "gave_up")]
        silent = share_of(int(arm.usable["silent_corruption"].sum()), len(arm.usable))
        shares = (rates.left_out, rates.as_failures, rates.best, silent)
        rows.append((*_named(run, arm), n, *counts, errors, *map(Rate, shares)))
    return Table(
        name="outcomes",
        title="Outcomes",
        columns=(
            *(*ARM, "Trials", "Solved", "Wrong", "Gave up", "Errors"),
            "Solved, errors left out",
            "Solved, errors as failures (worst case)",
            "Solved, errors as solved (best case)",
            "Silent corruption, errors left out",
        ),
        rows=tuple(rows),
        notes=(
            "errors are ours or the infrastructure's; shares are k/N with Wilson's 95% interval",
            "silent corruption: the answer is wrong, and a delivered fault in its content passed every verification",
            *ranking_warnings(run, arms),
            *([] if run.rerun else ["no trial was run again after an error, so none can differ from the rest"]),
            *(["trials whose calls were only counted are ungraded, and none of these"] if _any_ungraded(arms) else []),
        ),
    )


def _any_ungraded(arms: Arms) -> bool:
    return any(arm.count("ungraded") for arm in _each(arms))


def differences(run: Run, arms: Arms) -> Table:
    """Each architecture against each other, repetition by repetition."""
    rows: list[tuple[Cell, ...]] = []
    for condition, found in arms.items():
        for first, second in combinations(found.values(), 2):
            place = (condition.scenario, model_label(run, condition.model), condition.plan)
            rows.append((*place, f"{second.architecture} − {first.architecture}", *_difference(first, second)))
    title = "Paired differences between architectures"
    return Table("differences", title, (*ARM[:3], "Difference", *_DIFFERENCE), tuple(rows), _DIFFERENCE_NOTES)


_DIFFERENCE = ("Pairs", "Unpaired", *(measure.title for measure in COMPARED))
_DIFFERENCE_NOTES = (
    "paired by repetition, all else being equal; mean ± sd of the differences [95% interval of their mean]",
    "unpaired: trials whose twin ended in an error or is not recorded",
    "each interval is at 95% by itself: among twenty of them one misses by chance",
)


def _difference(first: Arm, second: Arm) -> tuple[Cell, ...]:
    """The cells under _DIFFERENCE for `second` less `first`."""
    paired = [second.less(first, measure.column) for measure in COMPARED]
    shown = [Estimate(one.difference, measure.digits) for one, measure in zip(paired, COMPARED, strict=True)]
    return (paired[0].difference.n, paired[0].unpaired, *shown)


def ledger(run: Run, arms: Arms) -> Table:
    """Where the tokens stand: sums over an arm's trials, errors among them, for they were paid as well."""
    rows: list[tuple[Cell, ...]] = []
    for arm in _each(arms):
        total = int(arm.trials["tokens"].sum())
        sums = [int(arm.trials[account].sum()) for account in ACCOUNTS]
        cells = [cell for one in sums for cell in (one, Number(one / total if total else None, 1, percent=True))]
        rows.append((*_named(run, arm), len(arm.trials), total, *cells))
    return Table(
        name="ledger",
        title="Ledger: every token in one account",
        columns=(*ARM, "Trials", "Tokens", *(name for account in ACCOUNTS for name in (account, f"{account} %"))),
        rows=tuple(rows),
        notes=("sums over all trials of the arm, those that ended in an error among them",),
    )


def injection(run: Run, arms: Arms) -> Table:
    """The receipts of the faults."""
    stages = ("planned", "delivered", "moot", "seen")
    endings = ("recovered", "gave_up", "unnoticed", "error")
    rows: list[tuple[Cell, ...]] = []
    for arm in _each(arms):
        own = run.faults[run.faults["trial"].isin(set(arm.trials["trial"]))]
        if own.empty:
            continue
        staged = {stage: int(own[stage].sum()) for stage in stages}
        ended = [int((own["ended"] == ending).sum()) for ending in endings]
        calls, trials = int(arm.trials["calls"].sum()), len(arm.trials)
        per_call = Number(staged["delivered"] / calls if calls else None, 3)
        per_task = Number(staged["delivered"] / trials, 3)
        rows.append((*_named(run, arm), trials, calls, *staged.values(), *ended, per_call, per_task))
    return Table(
        name="injection",
        title="Faults and their receipts",
        columns=(
            *(*ARM, "Trials", "Calls", "Planned", "Delivered", "Moot", "Seen"),
            *("Recovered", "Gave up", "Unnoticed", "In an error", "Delivered per call", "Delivered per task"),
        ),
        rows=tuple(rows),
        notes=(
            "every planned fault was delivered, or was moot because the text was too broken already to carry it",
            "a call that does several subtasks' work is exposed to the faults of each",
        ),
    )


def natural_failures(run: Run, published: Published) -> Table:
    """How often outputs failed that no fault had touched, by subtask."""
    untouched = run.outputs[~run.outputs["exposed"]]
    rows: list[tuple[Cell, ...]] = []
    for model in run.names("model"):
        for scenario in run.names("scenario"):
            own = untouched[(untouched["model"] == model) & (untouched["scenario"] == scenario)]
            found = published.natural(scenario)
            paper = f"{found.failures}/{found.executions}" if found else "–"
            parts = [(subtask, own[own["subtask"] == subtask], "–") for subtask in dict.fromkeys(own["subtask"].tolist())]
            for subtask, outputs, theirs in [*parts, ("all", own, paper)]:
                n = len(outputs)
                shares = [share_of(int(outputs[what].sum()), n) for what in ("malformed", "objected")]
                rows.append((scenario, model_label(run, model), subtask, n, *map(Rate, shares), theirs))
    sources = [
        f"{published.paper.source}, {one.place}{': ' + one.note if one.note else ''}" for one in published.natural_failures
    ]
    return Table(
        name="natural_failures",
        title="Failures that nobody planned, by subtask",
        columns=(
            "Scenario",
            "Model",
            "Subtask",
            "Outputs judged",
            "Schema failures",
            "Other rejections",
            "Schema failures, paper",
        ),
        rows=tuple(rows),
        notes=(
            "outputs of calls that carried a fault, and what was made from those, are left out; all architectures, all plans",
            "a rejected output that was never written leaves no trace of what it was made from, so some of the other "
            "rejections go back to faults upstream",
            "outputs of one repetition share their seeds over architectures and plans: intervals, which take them as "
            "independent, are too narrow by that",
            "schema failures: rejected for the form alone (schema, empty, refusal, no JSON, cut off)",
            *(f"paper: {source}" for source in dict.fromkeys(sources)),
        ),
    )


def usage(run: Run) -> Table:
    """Our ruler against the provider's own count."""
    rows: list[tuple[Cell, ...]] = []
    for model in run.names("model"):
        for found in usage_of(run.calls[run.calls["model"] == model]):
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


def _each(arms: Arms) -> Iterable[Arm]:
    return (arm for found in arms.values() for arm in found.values())


def _named(run: Run, arm: Arm) -> tuple[str, str, str, str]:
    condition = arm.condition
    return condition.scenario, model_label(run, condition.model), condition.plan, arm.architecture
