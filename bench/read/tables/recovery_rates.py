"""Does a system recover to a right answer? A table and a figure of what is solved under faults, beside the controls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from bench.read.analysis.arms import Arm, Arms
from bench.read.analysis.frames import Run
from bench.read.analysis.recovery_rates import RecoveryRate, recovery_rates
from bench.read.analysis.statistics import Share
from bench.read.render.cells import BoundedNumber, Rate
from bench.read.render.drawing import WIDEST, Picture, finish, legend_of_points, names_below, panel_title, panels
from bench.read.render.labels import arm_columns, counts_text, in_brackets, join_names, model_label, plan_phrase, slug
from bench.read.render.marks import Sign, draw_value, signs_of
from bench.read.render.table import Table, TableColumn, table_of
from bench.read.report.table_part import TablePart
from bench.record.config import FAULT_FREE


def recovery_tables(run: Run, arms: Arms) -> list[Table]:
    """Return the table. None is made if no control solved anything: then there is nothing to recover to."""
    rates = list(recovery_rates(run, arms))
    title = "Recovery: what is solved under faults, beside the controls"
    return (
        [table_of("recovery", title, _columns(run), rates, (*_NOTES, *_no_evidence(rates), *_second_draw(run)))]
        if rates
        else []
    )


def _columns(run: Run) -> tuple[TableColumn[RecoveryRate], ...]:
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


def _no_evidence(rates: Sequence[RecoveryRate]) -> Iterator[str]:
    """Name the plans that are no evidence, because they leave each trial only one possible result."""
    reasons = {rate.arm.condition.plan: rate.decided for rate in rates if rate.decided}
    yield from (f"{plan} is no evidence: {why}" for plan, why in reasons.items())


def _second_draw(run: Run) -> Iterator[str]:
    """Name the plans that throw a good reply away and report nothing. Their rate is the baseline for the others."""
    for name in run.names("plan"):
        faults = run.config.faults_of(name)
        if faults and all((fault.effect, fault.point) == ("empty", "output") for fault in faults):
            yield (
                f"{name} discards a good reply and reports nothing to repair: its rate is the rate of a second draw; a plan's "
                "rate above it is due to repair"
            )


# The figure


def recovery_figures(run: Run, arms: Arms) -> Iterator[Picture]:
    """Draw a figure for each model with a control that solved something: the share solved by architecture, without faults and
    under each plan. Each scenario has a panel."""
    shown = {rate.arm.condition.scenario for rate in recovery_rates(run, arms)}
    for model in run.names("model"):
        chosen = {
            condition: named for condition, named in arms.items() if condition.model == model and condition.scenario in shown
        }
        if chosen:
            yield _figure(run, model, chosen)


def _figure(run: Run, model: str, arms: Arms) -> Picture:
    scenarios = [name for name in run.names("scenario") if any(condition.scenario == name for condition in arms)]
    plans = [name for name in run.names("plan") if any(condition.plan == name for condition in arms)]
    names = [name for name in run.names("architecture") if any(name in named for named in arms.values())]
    signs = signs_of(plans)
    room = 0.5 + 0.25 * len(signs)
    most = ceil(len(names) / ceil(room * len(names) / WIDEST))
    cells = [(scenario, names[first : first + most]) for scenario in scenarios for first in range(0, len(names), most)]
    figure, axes = panels(len(cells), 3, max(4.2, room * most), 2.9)
    for (scenario, shown), ax in zip(cells, axes, strict=True):
        chosen = {condition.plan: named for condition, named in arms.items() if condition.scenario == scenario}
        shares = {plan: {name: arm.solved() for name, arm in named.items()} for plan, named in chosen.items()}
        _panel(ax, shares, shown, signs)
        panel_title(ax, scenario, counts_text([share.n for by_name in shares.values() for share in by_name.values()]))
    legend_of_points(figure, {_plan_named(plan): sign for plan, sign in signs.items()})
    first = {condition.plan: named for condition, named in arms.items() if condition.scenario == scenarios[0]}
    whose = "architectures" if len(names) > 1 else names[0]
    title = f"On {scenarios[0]}, {whose} solved {_solved_by_plan(first)} {in_brackets(model_label(run, model))}"
    caption = f"{title}. Whiskers are 95% intervals. All plans ran on the same instances, and a table has the paired change."
    return finish(figure, slug("recovery", model), title, caption)


def _plan_named(plan: str) -> str:
    return "no fault" if plan == FAULT_FREE else plan.replace("_", " ")


def _solved_by_plan(by_name: Mapping[str, Mapping[str, Arm]]) -> str:
    """Return in words what the worst and the best architecture solve without faults, and under the plan under which the best
    architecture solves least."""
    by_plan = {
        plan: sorted((arm.solved() for arm in named.values()), key=lambda share: share.rate or 0.0)
        for plan, named in by_name.items()
    }
    worst = min(
        (plan for plan in by_plan if plan != FAULT_FREE), key=lambda plan: by_plan[plan][-1].rate or 0.0, default=FAULT_FREE
    )
    texts = {
        plan: " to ".join(dict.fromkeys(f"{share.k}/{share.n}" for share in (few[0], few[-1]))) for plan, few in by_plan.items()
    }
    return join_names([f"{texts[plan]} {plan_phrase(plan)}" for plan in dict.fromkeys((FAULT_FREE, worst)) if plan in texts])


def _panel(ax: Axes, shares: Mapping[str, Mapping[str, Share]], names: Sequence[str], signs: Mapping[str, Sign]) -> None:
    step = 0.6 / len(signs)
    for plan, by_name in shares.items():
        place = list(signs).index(plan) - (len(signs) - 1) / 2
        for name, share in by_name.items():
            if name in names and share.rate is not None:
                draw_value(ax, names.index(name) + step * place, (share.rate, share.low, share.high), signs[plan])
    names_below(ax, names)
    ax.set_ylim(-0.03, 1.03)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_ylabel("share of trials solved")


PARTS = (TablePart("recovery", lambda of: recovery_tables(of.run, of.arms), "recovery"),)
