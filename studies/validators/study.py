"""Validators: the mutation score of each subtask's schema and checks, and the mutants that survived."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from pydantic import ValidationError

from bench.common.errors import ResultsError
from bench.common.wording import first_violation
from bench.read.analysis.frames import Run
from bench.read.analysis.replies import FORM_REASONS
from bench.read.analysis.statistics import Share, share_of
from bench.read.render.cells import Rate
from bench.read.render.drawing import BLACK, VERMILION, Picture, finish, panels
from bench.read.render.table import Table, TableColumn, table_of

from .mutants import KEPT, Mutants, Survivor

UNREADABLE = tuple(reason for reason in FORM_REASONS if reason != "schema")


@dataclass(frozen=True)
class Score:
    """The mutation score of one subtask's output and one effect.

    caught      share of the mutants that were rejected: as unreadable, by the schema, by a check
    dangerous   share of the mutants that were accepted and make the reference answer wrong
    too_weak    number of survivors that an architecture that asks for sufficiency would reject
    """

    scenario: str
    subtask: str
    effect: str
    caught: Share
    unreadable: int
    by_schema: int
    by_check: int
    dangerous: Share
    too_weak: int
    survivors: tuple[Survivor, ...]


ScoredSurvivor = tuple[Score, Survivor]
"""A survivor, with the score of its subtask and effect."""


def mutation_scores(run: Run) -> list[Score]:
    """Return the scores by scenario, subtask and effect, from the run's manifest. An effect that cannot strike an output is
    left out.

    Raises ResultsError if the manifest has no mutants because the run's config did not ask for them.
    """
    try:
        kept = KEPT.validate_python(run.manifest.prepared.get("mutants", []))
    except ValidationError as error:
        raise ResultsError(f"its manifest holds no mutants: {first_violation(error).line}; restore it from a copy") from error
    if not kept:
        raise ResultsError('its manifest holds no mutants; run it again with a config that says study = "validators"')
    return [_score(mutants) for mutants in kept if mutants.made]


def _score(mutants: Mutants) -> Score:
    caught, made, survivors = mutants.caught, mutants.made, mutants.survivors
    harm = sum(survivor.times for survivor in survivors if not survivor.harmless)
    weak = sum(survivor.times for survivor in survivors if survivor.too_weak)
    return Score(
        scenario=mutants.scenario,
        subtask=mutants.subtask,
        effect=mutants.effect,
        caught=share_of(sum(caught.values()), made),
        unreadable=sum(caught.get(reason, 0) for reason in UNREADABLE),
        by_schema=caught.get("schema", 0),
        by_check=caught.get("check", 0),
        dangerous=share_of(harm, made),
        too_weak=weak,
        survivors=survivors,
    )


# Tables and figures

NOTES = (
    "the reference outputs, corrupted; no model was asked. Shares are k/N of the mutants drawn, with Wilson's 95% interval",
    "unreadable, schema, check: what rejected it first. Too weak: survivors that runtime_structured would still ask again for",
    "dangerous: accepted, and the reference answer with this output in its place is graded wrong; a survivor whose own subtask "
    "is not graded may do harm further on all the same",
)


def tables(run: Run) -> Iterator[Table]:
    scores = mutation_scores(run)
    columns = (
        TableColumn[Score]("Scenario", lambda score: score.scenario),
        TableColumn[Score]("Subtask", lambda score: score.subtask),
        TableColumn[Score]("Effect", lambda score: score.effect),
        TableColumn[Score]("Caught", lambda score: Rate(score.caught)),
        TableColumn[Score]("Unreadable", lambda score: score.unreadable),
        TableColumn[Score]("Schema", lambda score: score.by_schema),
        TableColumn[Score]("Check", lambda score: score.by_check),
        TableColumn[Score]("Too weak", lambda score: score.too_weak),
        TableColumn[Score]("Dangerous", lambda score: Rate(score.dangerous)),
    )
    title = "Validators: corrupted outputs caught, by subtask and effect"
    yield table_of("study-validators", title, columns, scores, NOTES)
    yield _survivors(scores)


def _survivors(scores: Sequence[Score]) -> Table:
    columns = (
        TableColumn[ScoredSurvivor]("Scenario", lambda row: row[0].scenario),
        TableColumn[ScoredSurvivor]("Subtask", lambda row: row[0].subtask),
        TableColumn[ScoredSurvivor]("Effect", lambda row: row[0].effect),
        TableColumn[ScoredSurvivor]("Times drawn", lambda row: row[1].times),
        TableColumn[ScoredSurvivor]("What it changes", lambda row: row[1].change),
        TableColumn[ScoredSurvivor]("Too weak", lambda row: row[1].too_weak or "no"),
        TableColumn[ScoredSurvivor]("Answer with it is graded", lambda row: "right" if row[1].harmless else "wrong"),
    )
    survivors = (
        (score, mutant)
        for score in scores
        for mutant in sorted(score.survivors, key=lambda mutant: (mutant.harmless, -mutant.times, mutant.change))
    )
    notes = ("accepted by schema and checks; the dangerous ones of each subtask and effect first",)
    return table_of("study-validators-survivors", "Validators: the surviving mutants", columns, survivors, notes)


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure with a panel for each scenario: subtasks down, effects across, each field the share caught."""
    scores = mutation_scores(run)
    scenarios = list(dict.fromkeys(score.scenario for score in scores))
    effects = list(dict.fromkeys(score.effect for score in scores))
    figure, axes = panels(len(scenarios), 1, 1.6 + 0.95 * len(effects), 2.4)
    for scenario, ax in zip(scenarios, axes, strict=True):
        _fields(ax, [score for score in scores if score.scenario == scenario], effects)
        ax.set_title(scenario)
    title = "Validators: share of corrupted outputs that schema and checks reject"
    caption = "Below a share: how many of the drawn mutants were caught; d: how many of the others make the answer wrong."
    yield finish(figure, "study-validators", title, f"{title}, by subtask and effect. {caption}")


def _fields(ax: Axes, scores: Sequence[Score], effects: Sequence[str]) -> None:
    subtasks = list(dict.fromkeys(score.subtask for score in scores))
    shares = [[float("nan")] * len(effects) for _ in subtasks]
    for score in scores:
        row, column = subtasks.index(score.subtask), effects.index(score.effect)
        shares[row][column] = score.caught.rate or 0.0
        danger = f", d {score.dangerous.k}" if score.dangerous.k else ""
        text = f"{score.caught.rate or 0.0:.0%}\n{score.caught.k}/{score.caught.n}{danger}"
        ax.text(column, row, text, ha="center", va="center", fontsize=7, color=BLACK)
    colours = LinearSegmentedColormap.from_list("caught", [VERMILION, "white"])
    ax.imshow(shares, cmap=colours, vmin=0.0, vmax=1.0, aspect="auto")
    ax.set_xticks(range(len(effects)), [effect.replace("_", " ") for effect in effects])
    ax.set_yticks(range(len(subtasks)), [subtask.replace("_", " ") for subtask in subtasks])
    ax.tick_params(length=0)
