"""The table and the figure of recovery: how many tasks are solved under faults, beside the same tasks without faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import ceil

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from bench.read.analysis.arms import Arm, Arms
from bench.read.analysis.frames import Run
from bench.read.analysis.recovery_rates import RecoveryRate, recovery_rates
from bench.read.analysis.statistics import Share
from bench.read.render.cells import BoundedNumber, Rate
from bench.read.render.drawing import MAX_WIDTH_INCHES, Picture, finish, legend_of_points, names_below, panel_title, panels
from bench.read.render.labels import arm_columns, counts_text, in_brackets, join_names, model_label, plan_phrase, slug
from bench.read.render.marks import Sign, draw_value, signs_of
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.render.table_part import TablePart
from bench.record.config import FAULT_FREE


def recovery_tables(run: Run, arms: Arms) -> list[Table]:
    """Return the table of recovery. No table if no control solved anything: then there is nothing to recover to."""
    rates = list(recovery_rates(run, arms))
    title = "Recovery: what is solved under faults, beside the controls"
    decided = {rate.arm.condition.plan: rate.decided for rate in rates if rate.decided}
    no_evidence = (f"{plan} is no evidence: {why}" for plan, why in decided.items())
    notes = (*_NOTES, *no_evidence, *_baseline_notes(run))
    return [table_of("recovery", title, _columns(run), rates, notes)] if rates else []


def _columns(run: Run) -> tuple[TableColumn[RecoveryRate], ...]:
    """Return the columns of the table of recovery."""
    return (
        *(column.of(lambda rate: rate.arm) for column in arm_columns(run)),
        TableColumn("Pairs", lambda rate: rate.outcomes.pairs),
        TableColumn("Solved by both", lambda rate: rate.outcomes.both),
        TableColumn("By the control alone", lambda rate: rate.outcomes.first),
        TableColumn("Under faults alone", lambda rate: rate.outcomes.second),
        TableColumn("By neither", lambda rate: rate.outcomes.neither),
        TableColumn("Net change", lambda rate: BoundedNumber.of(rate.change, 1, percent=True)),
        TableColumn("Recovered, of what all controls solve", lambda rate: Rate(rate.recovered)),
        TableColumn("Struck of these", lambda rate: rate.struck),
        TableColumn("Silent corruption", lambda rate: Rate(rate.corrupted)),
        TableColumn("Silently wrong after repair", lambda rate: Rate(rate.repaired)),
    )


_NOTES = (
    "pairs: a trial under faults and its control, by instance and repetition; pairs with an error are left out; net change: "
    "(solved under faults − solved by the control) / all pairs, with Bonett and Price's 95% interval",
    "recovered: solved under faults, out of the pairs that the controls of all architectures solve, so all have the same "
    "denominator; k/N with Wilson's 95% interval; struck: how many of these pairs had a fault delivered to this architecture",
    "silent corruption: the answer is wrong, and an effective fault in the content passed every verification; out of the "
    "pairs that the control solves and that had an effective fault in the content",
    "silently wrong after repair: an effective fault was noticed, the answer is wrong, and every check passed; out of the "
    "pairs that the control solves and in which an effective fault was noticed",
    "the first round and the price show what recovery cost; the outcomes show what was wrong without a fault",
)


def _baseline_notes(run: Run) -> Iterator[str]:
    """Yield a note for each plan that discards a good reply without an error. Its rate is the baseline for other plans."""
    for name in run.names("plan"):
        faults = run.config.faults_of(name)
        if faults and all((fault.effect, fault.point) == ("empty", "output") for fault in faults):
            yield (
                f"{name} discards a good reply and reports nothing to repair: its rate is the rate of a second draw; a plan's "
                "rate above it is due to repair"
            )


# The figure


def recovery_figures(run: Run, arms: Arms) -> Iterator[Picture]:
    """Yield a figure for each model: the share solved by architecture, without faults and under each plan. Each scenario has a
    panel. A scenario of which no control solved a trial is left out."""
    scenarios = {rate.arm.condition.scenario for rate in recovery_rates(run, arms)}
    for model in run.names("model"):
        conditions = [each for each in arms if each.model == model and each.scenario in scenarios]
        if conditions:
            yield _figure(run, model, {condition: arms[condition] for condition in conditions})


def _figure(run: Run, model: str, arms: Arms) -> Picture:
    """Draw the shares that one model's arms solved. A scenario with many architectures has several panels."""
    scenarios = [name for name in run.names("scenario") if any(condition.scenario == name for condition in arms)]
    plans = [name for name in run.names("plan") if any(condition.plan == name for condition in arms)]
    names = [name for name in run.names("architecture") if any(name in by_architecture for by_architecture in arms.values())]
    signs = signs_of(plans)
    inches_per_name = 0.5 + 0.25 * len(signs)
    names_per_panel = ceil(len(names) / ceil(inches_per_name * len(names) / MAX_WIDTH_INCHES))
    parts = [names[start : start + names_per_panel] for start in range(0, len(names), names_per_panel)]
    cells = list(product(scenarios, parts))
    figure, axes = panels(len(cells), 3, max(4.2, inches_per_name * names_per_panel), 2.9)
    for (scenario, names_of_panel), ax in zip(cells, axes, strict=True):
        shares = {
            condition.plan: {name: arm.solved() for name, arm in by_architecture.items()}
            for condition, by_architecture in arms.items()
            if condition.scenario == scenario
        }
        _draw_panel(ax, shares, names_of_panel, signs)
        panel_title(ax, scenario, counts_text([share.n for by_name in shares.values() for share in by_name.values()]))
    legend_of_points(figure, {_plan_label(plan): sign for plan, sign in signs.items()})
    first = {condition.plan: by_name for condition, by_name in arms.items() if condition.scenario == scenarios[0]}
    subject = "architectures" if len(names) > 1 else names[0]
    title = f"On {scenarios[0]}, {subject} solved {_solved_by_plan(first)} {in_brackets(model_label(run, model))}"
    caption = f"{title}. Whiskers are 95% intervals. All plans ran on the same instances, and a table has the paired change."
    return finish(figure, slug("recovery", model), title, caption)


def _plan_label(plan: str) -> str:
    """Return a fault plan as the figure's legend names it."""
    return "no fault" if plan == FAULT_FREE else plan.replace("_", " ")


def _solved_by_plan(arms_by_plan: Mapping[str, Mapping[str, Arm]]) -> str:
    """Return in words what the worst and the best architecture solve without faults, and under the plan under which the best
    architecture solves least."""
    texts, best_rates = dict[str, str](), dict[str, float]()
    for plan, by_name in arms_by_plan.items():
        shares = sorted((arm.solved() for arm in by_name.values()), key=lambda share: share.rate or 0.0)
        texts[plan] = " to ".join(dict.fromkeys(f"{share.k}/{share.n}" for share in (shares[0], shares[-1])))
        best_rates[plan] = shares[-1].rate or 0.0
    worst = min((plan for plan in texts if plan != FAULT_FREE), key=lambda plan: best_rates[plan], default=FAULT_FREE)
    return join_names([f"{texts[plan]} {plan_phrase(plan)}" for plan in dict.fromkeys((FAULT_FREE, worst)) if plan in texts])


def _draw_panel(ax: Axes, shares: Mapping[str, Mapping[str, Share]], names: Sequence[str], signs: Mapping[str, Sign]) -> None:
    """Draw the share that each of these architectures solved, with its interval, at the x of its name. The points of the plans
    are beside each other. `shares` is plan -> architecture -> share."""
    step = 0.6 / len(signs)
    for plan, by_name in shares.items():
        offset = step * (list(signs).index(plan) - (len(signs) - 1) / 2)
        for name, share in by_name.items():
            if name in names and share.rate is not None:
                draw_value(ax, names.index(name) + offset, (share.rate, share.low, share.high), signs[plan])
    names_below(ax, names)
    ax.set_ylim(-0.03, 1.03)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_ylabel("share of trials solved")


PARTS = (TablePart("recovery", lambda of: recovery_tables(of.run, of.arms), "recovery"),)
