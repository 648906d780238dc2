"""Depth: the price of a failure by where in the pipeline it strikes, and by the length of the pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.axes import Axes

from bench.common.errors import ResultsError
from bench.read.analysis.arms import Arm, Arms, Condition, arms_of
from bench.read.analysis.frames import Run
from bench.read.analysis.plans import single_faults
from bench.read.analysis.statistics import Mean
from bench.read.render.cells import Estimate, Rate
from bench.read.render.drawing import PALE, Picture, finish, legend_of_points, panel_title, panels
from bench.read.render.labels import model_label, slug, trial_counts_text
from bench.read.render.marks import signs_of
from bench.read.render.table import Table, TableColumn, table_of
from bench.record.plan_entries import FaultEntry

from ..by_model import by_model
from ..context.study import slope_of
from ..marks import draw_line

End = Literal["first", "last"]


@dataclass(frozen=True)
class StruckArm:
    """An arm whose fault strikes one subtask, at `position` of `length`.

    ahead          number of subtasks from it to the next checkpoint, both counted; None if there is no checkpoint
    retry_tokens   of the trials that did not end in an error
    """

    scenario: str
    model: str
    architecture: str
    subtask: str
    position: int
    length: int
    ahead: int | None
    retry_tokens: Mean
    arm: Arm

    @property
    def end(self) -> End | None:
        """Whether it is the pipeline's first or last subtask. A single subtask is the first."""
        if self.position == 1:
            return "first"
        return "last" if self.position == self.length else None


@dataclass(frozen=True)
class LengthSeries:
    """One architecture on one pack in several sizes, with the fault at the same end of the pipeline.

    lengths  (number of subtasks, the arm of that size), ascending
    slope    additional retry tokens for each subtask added, calculated as in the study `context`
    """

    pack: str
    model: str
    end: End
    architecture: str
    lengths: tuple[tuple[int, Arm], ...]
    slope: Mean


@dataclass(frozen=True)
class Depth:
    """The results by position and by length. One of them can be empty, not both."""

    positions: tuple[StruckArm, ...]
    lengths: tuple[LengthSeries, ...]


def depth(run: Run) -> Depth:
    """Return the results by position for scenarios struck at several subtasks, and by length for packs of several lengths.

    Raises ResultsError if the run has neither.
    """
    struck = _struck(run)
    result = Depth(_at_several_positions(struck), _at_several_lengths(struck))
    if not (result.positions or result.lengths):
        needed = "fault plans with one fault each, of the same kind, at different subtasks, or a pack in several lengths"
        raise ResultsError(f"needs {needed}")
    return result


def _struck(run: Run) -> list[StruckArm]:
    """Return the arms by scenario, model, position and architecture. If two plans strike the same subtask, the first counts."""
    arms = arms_of(run)
    return [
        struck
        for scenario in run.names("scenario")
        for model in run.names("model")
        for struck in _struck_in(run, arms, scenario, model)
    ]


def _struck_in(run: Run, arms: Arms, scenario: str, model: str) -> Iterator[StruckArm]:
    pack = run.pack(scenario)
    subtasks = pack.subtasks
    for subtask, plan in _plans_by_subtask(single_faults(run), scenario.partition(":")[0], subtasks).items():
        for architecture, arm in arms.get(Condition(scenario, model, plan), {}).items():
            ahead = _ahead(subtask, pack.stages)
            position, retried = subtasks.index(subtask) + 1, arm.mean("retry_tokens")
            yield StruckArm(scenario, model, architecture, subtask, position, len(subtasks), ahead, retried, arm)


def _plans_by_subtask(faults: Mapping[str, FaultEntry], pack: str, subtasks: Sequence[str]) -> dict[str, str]:
    """Return subtask -> the first plan whose single fault strikes it, in the pipeline's order."""
    plans: dict[str, str] = {}
    for plan, fault in faults.items():
        named = fault.subtask
        subtask = str(named.get(pack, "")) if isinstance(named, Mapping) else str(named)
        if subtask in subtasks:
            plans.setdefault(subtask, plan)
    return {subtask: plans[subtask] for subtask in subtasks if subtask in plans}


def _ahead(subtask: str, stages: Sequence[Sequence[str]]) -> int | None:
    return next((len(stage) - stage.index(subtask) for stage in stages if subtask in stage), None)


def _at_several_positions(struck: Sequence[StruckArm]) -> tuple[StruckArm, ...]:
    positions: dict[str, set[int]] = {}
    for arm in struck:
        positions.setdefault(arm.scenario, set()).add(arm.position)
    return tuple(arm for arm in struck if len(positions[arm.scenario]) > 1)


def _at_several_lengths(struck: Iterable[StruckArm]) -> tuple[LengthSeries, ...]:
    """Return series by pack, model, end and architecture. Of two sizes of one length the first counts."""
    series: dict[tuple[str, str, End, str], dict[int, Arm]] = {}
    for struck_arm in struck:
        if struck_arm.end and len(struck_arm.arm.usable):
            key = (struck_arm.scenario.partition(":")[0], struck_arm.model, struck_arm.end, struck_arm.architecture)
            series.setdefault(key, {}).setdefault(struck_arm.length, struck_arm.arm)
    several = [(key, tuple(sorted(arms.items(), key=lambda of: of[0]))) for key, arms in series.items() if len(arms) > 1]
    return tuple(LengthSeries(*key, lengths, slope_of(lengths)) for key, lengths in several)


# Tables and figures

POSITION_NOTES = (
    "retry tokens of a trial whose fault strikes this one subtask; mean ± sd [95% interval]",
    "to the checkpoint: how many subtasks static had run, or was to run, before it looked, the failed one among them",
)
LENGTH_NOTES = (
    "retry tokens of a trial whose fault strikes the pipeline's first or last subtask; mean ± sd [95% interval]",
    "slope: retry tokens more by subtask added; least squares through the lengths of each repetition, then the mean over "
    "repetitions with Student's 95% interval",
)
LONGEST_NAMED = 8  # subtasks; in a longer pipeline their names do not fit beside each other, and numbers are shown
SAID = "Points are means with their 95% intervals, joined by straight lines."


def tables(run: Run) -> Iterator[Table]:
    result = depth(run)
    if result.positions:
        yield _positions_table(run, result.positions)
    if result.lengths:
        yield _lengths_table(run, result.lengths)


def _positions_table(run: Run, arms: Sequence[StruckArm]) -> Table:
    columns = (
        TableColumn[StruckArm]("Scenario", lambda arm: arm.scenario),
        TableColumn[StruckArm]("Model", lambda arm: model_label(run, arm.model)),
        TableColumn[StruckArm]("Position", lambda arm: f"{arm.position} of {arm.length}"),
        TableColumn[StruckArm]("Subtask", lambda arm: arm.subtask),
        TableColumn[StruckArm]("To the checkpoint", lambda arm: "–" if arm.ahead is None else arm.ahead),
        TableColumn[StruckArm]("Architecture", lambda arm: arm.architecture),
        TableColumn[StruckArm]("Retry tokens", lambda arm: Estimate(arm.retry_tokens, with_n=True)),
        TableColumn[StruckArm]("Solved", lambda arm: Rate(arm.arm.solved())),
    )
    title = "Depth: retry tokens by where in the pipeline the failure strikes"
    return table_of("study-depth", title, columns, arms, POSITION_NOTES)


def _lengths_table(run: Run, all_series: Sequence[LengthSeries]) -> Table:
    columns = (
        TableColumn[LengthSeries]("Pack", lambda series: series.pack),
        TableColumn[LengthSeries]("Model", lambda series: model_label(run, series.model)),
        TableColumn[LengthSeries]("Struck subtask", lambda series: series.end),
        TableColumn[LengthSeries]("Architecture", lambda series: series.architecture),
        TableColumn[LengthSeries](
            "Retry tokens by number of subtasks",
            lambda series: "; ".join(
                f"{length}: {Estimate(arm.mean('retry_tokens')).text()}" for length, arm in series.lengths
            ),
        ),
        TableColumn[LengthSeries]("Slope", lambda series: Estimate(series.slope, 1, with_n=True)),
    )
    title = "Depth: retry tokens by the length of the pipeline"
    return table_of("study-depth-length", title, columns, all_series, LENGTH_NOTES)


def pictures(run: Run) -> Iterator[Picture]:
    """Yield for each model a figure by position (a panel for each scenario) and a figure by length (for each pack and end)."""
    result = depth(run)
    for model, struck in by_model(run, result.positions):
        yield _positions_figure(run, model, struck)
    for model, growth in by_model(run, result.lengths):
        yield _lengths_figure(run, model, growth)


def _positions_figure(run: Run, model: str, arms: Sequence[StruckArm]) -> Picture:
    scenarios = list(dict.fromkeys(arm.scenario for arm in arms))
    figure, axes = panels(len(scenarios), 2, 4.6, 3.0)
    signs = signs_of(run.names("architecture"))
    for scenario, ax in zip(scenarios, axes, strict=True):
        panel_arms = [arm for arm in arms if arm.scenario == scenario]
        for place, (architecture, sign) in enumerate(signs.items()):
            shift = 0.08 * (place - (len(signs) - 1) / 2)
            draw_line(
                ax, [(arm.position + shift, arm.retry_tokens) for arm in panel_arms if arm.architecture == architecture], sign
            )
        ax.set_title(f"{scenario}, {trial_counts_text(arm.arm for arm in panel_arms)}")
        names = {
            arm.position: arm.subtask.replace("_", "\n") if arm.length <= LONGEST_NAMED else arm.position for arm in panel_arms
        }
        ax.set_xticks(list(names), map(str, names.values()))
        _name_axes(ax, "the subtask whose first reply lacks a field")
    legend_of_points(figure, signs)
    title = f"Depth: what a failure costs by where it strikes, {model_label(run, model)}"
    return finish(figure, slug("study", "depth", model), title, f"{title}. {SAID}")


def _lengths_figure(run: Run, model: str, all_series: Sequence[LengthSeries]) -> Picture:
    places = list(dict.fromkeys((series.pack, series.end) for series in all_series))
    figure, axes = panels(len(places), 2, 4.6, 3.0)
    signs = signs_of(run.names("architecture"))
    for (pack, end), ax in zip(places, axes, strict=True):
        panel_series = [series for series in all_series if (series.pack, series.end) == (pack, end)]
        for series in panel_series:
            draw_line(ax, [(length, arm.mean("retry_tokens")) for length, arm in series.lengths], signs[series.architecture])
        panel_title(
            ax, f"{pack}, {end} subtask struck", trial_counts_text(arm for series in panel_series for _, arm in series.lengths)
        )
        ax.set_xticks(sorted({length for series in panel_series for length, _ in series.lengths}))
        _name_axes(ax, "subtasks in the pipeline")
    legend_of_points(figure, signs)
    title = f"Depth: what a failure costs by the length of the pipeline, {model_label(run, model)}"
    return finish(figure, slug("study", "depth", "length", model), title, f"{title}. {SAID}")


def _name_axes(ax: Axes, x: str) -> None:
    ax.set_xlabel(x)
    ax.set_ylabel("retry tokens a trial")
    ax.set_ylim(bottom=0)
    ax.grid(axis="y", color=PALE, lw=0.6)
