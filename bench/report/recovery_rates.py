"""Does a system recover to a right answer? What is solved under faults beside what the controls solve: a table and a figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from bench.analysis.arms import Arms
from bench.analysis.frames import Run
from bench.analysis.recovery_rates import RecoveryRate, recovery_rates
from bench.analysis.statistics import Share
from bench.render.drawing import PALE, Picture, finish, legend_of_points, panel_title, panels, tick_labels
from bench.render.labels import ARM, arm_cells, model_label, slug
from bench.render.marks import Sign, bounded, signs_of
from bench.render.table import BoundedNumber, Cell, Rate, Table


def recovery_tables(run: Run, arms: Arms) -> list[Table]:
    """None where no control solved anything: then there is nothing to recover to."""
    rows = tuple(_row(run, one) for one in recovery_rates(run, arms))
    title = "Recovery: what is solved under faults, beside the controls"
    return [Table("recovery", title, _COLUMNS, rows, (*_NOTES, *_second_draw(run)))] if rows else []


_COLUMNS = (
    *(*ARM, "Pairs", "Solved by both", "By the control alone", "Under faults alone", "By neither", "Net change"),
    *("Recovered, of what all controls solve", "Struck of these", "Silent corruption"),
)
_NOTES = (
    "pairs: of a trial under faults and its control, by instance and repetition; those in which one ended in an error are left "
    "out; net change: solved under faults less solved by the control, by all pairs, with Bonett and Price's 95% interval",
    "recovered: solved under faults, of the pairs that the controls of all architectures solve, so that each has the same "
    "denominator; k/N with Wilson's 95% interval; struck: those of them in which a fault was delivered to this architecture",
    "silent corruption: the answer is wrong, and an effective fault in the content passed every verification; of the pairs "
    "that the control solves and in which such a fault was effective",
    "what it took stands with the first round and the price; what was wrong without a fault, with the outcomes",
)


def _second_draw(run: Run) -> Iterator[str]:
    """Plans that throw a good reply away and tell nothing of it: what any other rate is to be read beside."""
    for name in run.names("fault"):
        faults = run.config.get("plan", {}).get(name, {}).get("faults", [])
        if faults and all((one["effect"], one["point"]) == ("empty", "output") for one in faults):
            yield (
                f"{name} throws a good reply away and tells nothing to repair: its rate is that of a second draw, and what "
                "another lies above it is repair"
            )


def _row(run: Run, one: RecoveryRate) -> tuple[Cell, ...]:
    found, change = one.outcomes, one.change
    net = BoundedNumber(change.difference, change.low, change.high, 1, percent=True)
    counts = (found.pairs, found.both, found.first, found.second, found.neither)
    return (*arm_cells(run, one.arm), *counts, net, Rate(one.recovered), one.struck, Rate(one.corrupted))


# The figure


def recovery_figures(run: Run, arms: Arms) -> Iterator[Picture]:
    """One for each model: the recovery rate by architecture and fault plan, a panel for each scenario."""
    rates = [one for one in recovery_rates(run, arms) if one.recovered.n]
    for model in run.names("model"):
        if own := [one for one in rates if one.arm.condition.model == model]:
            yield _figure(run, model, own)


def _figure(run: Run, model: str, rates: Sequence[RecoveryRate]) -> Picture:
    scenarios = _by_scenario(rates)
    signs = signs_of(list(dict.fromkeys(one.arm.condition.plan for one in rates)))
    names = [name for name in run.names("architecture") if any(one.arm.architecture == name for one in rates)]
    figure, axes = panels(len(scenarios), 3, max(4.2, (0.5 + 0.25 * len(signs)) * len(names)), 2.9)
    for (scenario, found), ax in zip(scenarios.items(), axes, strict=True):
        _panel(ax, found, names, signs)
        numbers = {one.arm.condition.plan: one.recovered.n for one in found}
        panel_title(ax, scenario, _numbers(numbers))
    legend_of_points(figure, signs)
    title = f"Recovered to a right answer, by fault plan, {model_label(run, model)}"
    caption = (
        f"{title}: solved under faults, of the N pairs of instance and repetition that every architecture solves without; "
        "whiskers are 95% intervals."
    )
    return finish(figure, slug("recovery", model), title, caption)


def _by_scenario(rates: Iterable[RecoveryRate]) -> Mapping[str, list[RecoveryRate]]:
    found: dict[str, list[RecoveryRate]] = {}
    for one in rates:
        found.setdefault(one.arm.condition.scenario, []).append(one)
    return found


def _numbers(by_plan: Mapping[str, int]) -> str:
    """As one number, where all plans have it."""
    if len(set(by_plan.values())) == 1:
        return f"N = {next(iter(by_plan.values()))}"
    return ", ".join(f"{plan}: N = {n}" for plan, n in by_plan.items())


def _panel(ax: Axes, rates: Sequence[RecoveryRate], names: Sequence[str], signs: Mapping[str, Sign]) -> None:
    step = 0.6 / len(signs)
    for one in rates:
        place = list(signs).index(one.arm.condition.plan) - (len(signs) - 1) / 2
        _point(ax, names.index(one.arm.architecture) + step * place, one.recovered, signs[one.arm.condition.plan])
    ax.set_xticks(range(len(names)), tick_labels(names))
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.set_ylim(-0.03, 1.03)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_ylabel("recovered")
    ax.grid(axis="y", color=PALE, lw=0.6)


def _point(ax: Axes, x: float, share: Share, sign: Sign) -> None:
    if share.rate is not None:
        bounded(ax, x, (share.rate, share.low, share.high), sign)
