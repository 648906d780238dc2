"""Answer format: how the form in which a model is asked to answer changes solved, rejected and tokens, by architecture."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes

from bench.common.errors import ResultsError
from bench.read.analysis.arms import Arm, Arms, Condition, arms_of, pairs_of
from bench.read.analysis.frames import Run
from bench.read.analysis.replies import MALFORMED
from bench.read.analysis.statistics import Mean, PairedMean, RateDifference, Share, amount_of, by_unit
from bench.read.render.cells import Estimate, Rate, RateGap
from bench.read.render.drawing import PALE, Picture, finish, legend_of_points, panel_title, panels
from bench.read.render.labels import model_label, slug
from bench.read.render.marks import Sign, signs_of
from bench.read.render.table import Table, TableColumn, table_of
from bench.record.formats import DEFAULT

from ..marks import whisker

ASIDE = ("answer_format", "response_format", "recording", "cache_from")
"""Parameters that can differ between formats of the same model."""


@dataclass(frozen=True)
class FormatArm:
    """One architecture in one answer format, compared with itself asked for JSON in words.

    malformed, objected   replies of a trial that were rejected for their form, or for their content; each reply counts once
    tokens                of a trial
    solved_less, tokens_less   minus the arm in json, paired by (instance, repetition); None for the arm in json
    """

    scenario: str
    plan: str
    model: str
    architecture: str
    answer_format: str
    arm: Arm
    solved: Share
    malformed: Mean
    objected: Mean
    tokens: Mean
    solved_less: RateDifference | None
    tokens_less: PairedMean | None


def answer_formats(run: Run) -> list[list[FormatArm]]:
    """Return the arms of one model in its formats, json first, by scenario, fault plan and architecture.

    Raises ResultsError if no model was asked in json and in another format.
    """
    arms = arms_of(run)
    rejected = _rejected_replies(run)
    format_arms = [
        group
        for models in _same_but_for_format(run)
        for scenario in run.names("scenario")
        for plan in run.names("plan")
        for architecture in run.names("architecture")
        if (group := _group(run, [Condition(scenario, model, plan) for model in models], architecture, arms, rejected))
    ]
    if not format_arms:
        raise ResultsError("needs a model under two names, one asked for json and one for another answer_format: [model.NAME]")
    return format_arms


def _same_but_for_format(run: Run) -> list[list[str]]:
    """Group the models that differ only in their answer format, json first. Models asked in one format only are left out."""
    same: dict[str, list[str]] = {}
    for model in run.names("model"):
        parameters = run.parameters_of(model).shown
        key = json.dumps({name: value for name, value in parameters.items() if name not in ASIDE}, sort_keys=True)
        same.setdefault(key, []).append(model)
    asked = {model: run.parameters_of(model).answer_format for model in run.names("model")}
    groups = (sorted(models, key=lambda model: asked[model] != DEFAULT) for models in same.values())
    return [models for models in groups if asked[models[0]] == DEFAULT != asked[models[-1]]]


def _rejected_replies(run: Run) -> pd.DataFrame:
    """Return trial -> how many of its replies were rejected for their form, and how many for their content."""
    malformed = run.replies["kind"].isin(MALFORMED)
    objected = run.replies["kind"].ne("") & ~malformed
    return pd.DataFrame({"malformed": malformed, "objected": objected}).groupby(run.replies["trial"]).sum()


def _group(run: Run, conditions: Sequence[Condition], architecture: str, arms: Arms, rejected: pd.DataFrame) -> list[FormatArm]:
    named = [arm for condition in conditions if (arm := arms.get(condition, {}).get(architecture))]
    return [_format_arm(run, arm, None if arm is named[0] else named[0], rejected) for arm in named]


def _format_arm(run: Run, arm: Arm, words: Arm | None, rejected: pd.DataFrame) -> FormatArm:
    condition = arm.condition
    asked = run.parameters_of(condition.model).answer_format
    return FormatArm(
        *(condition.scenario, condition.plan, condition.model, arm.architecture, asked, arm),
        solved=arm.solved(),
        malformed=_replies(arm, rejected, "malformed"),
        objected=_replies(arm, rejected, "objected"),
        tokens=arm.mean("tokens"),
        solved_less=arm.solved_minus(words) if words else None,
        tokens_less=arm.minus(words, "tokens") if words else None,
    )


def _replies(arm: Arm, rejected: pd.DataFrame, column: str) -> Mean:
    counts = rejected[column].reindex(arm.usable["trial"], fill_value=0).astype(float)
    return amount_of(by_unit(dict(zip(pairs_of(arm.usable), counts.tolist(), strict=True))).values(), "retry")


# Tables and figures

NOTES = (
    "json: one JSON object, asked for in words; schema: the same words, and the endpoint holds the model to it; fenced: "
    "code stands in code blocks behind the JSON; where outputs hold no code, fenced asks in the words of json",
    "solved: k/N with Wilson's 95% interval; replies rejected and tokens: mean ± sd of a trial with its 95% interval; a reply "
    "counts once, however many outputs it holds",
    "against json: paired by instance and repetition with the same architecture asked for JSON in words",
    "a simulated model makes no mistake of form: on it a format shows its tokens and nothing else",
)


def tables(run: Run) -> Iterator[Table]:
    columns = (
        TableColumn[FormatArm]("Scenario", lambda arm: arm.scenario),
        TableColumn[FormatArm]("Fault plan", lambda arm: arm.plan),
        TableColumn[FormatArm]("Architecture", lambda arm: arm.architecture),
        TableColumn[FormatArm]("Format", lambda arm: arm.answer_format),
        TableColumn[FormatArm]("Model", lambda arm: model_label(run, arm.model)),
        TableColumn[FormatArm]("Solved", lambda arm: Rate(arm.solved)),
        TableColumn[FormatArm]("Rejected for form", lambda arm: Estimate(arm.malformed, 2, with_n=True)),
        TableColumn[FormatArm]("Rejected for content", lambda arm: Estimate(arm.objected, 2)),
        TableColumn[FormatArm]("Tokens a trial", lambda arm: Estimate(arm.tokens)),
        TableColumn[FormatArm]("Solved against json", lambda arm: RateGap(arm.solved_less) if arm.solved_less else "–"),
        TableColumn[FormatArm](
            "Tokens against json",
            lambda arm: Estimate(arm.tokens_less.difference, with_n=True) if arm.tokens_less else "–",
        ),
    )
    arms = (arm for group in answer_formats(run) for arm in group)
    yield table_of("study-answer_format", "Answer format: solved, rejected and tokens", columns, arms, NOTES)


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure for each model: solved shares above, tokens a trial below, by architecture. Each scenario and fault plan
    has a column of panels."""
    groups = answer_formats(run)
    for model in dict.fromkeys(group[0].model for group in groups):
        yield _figure(run, [format_arm for group in groups if group[0].model == model for format_arm in group])


def _figure(run: Run, shown: Sequence[FormatArm]) -> Picture:
    signs = signs_of(list(dict.fromkeys(arm.answer_format for arm in shown)))
    places = list(dict.fromkeys((arm.scenario, arm.plan) for arm in shown))
    figure, axes = panels(2 * len(places), len(places), 3.2, 2.4)
    for number, ax in enumerate(axes):
        scenario, plan = places[number % len(places)]
        panel_arms = [arm for arm in shown if (arm.scenario, arm.plan) == (scenario, plan)]
        _panel(ax, panel_arms, signs, above=number < len(places))
        panel_title(ax, scenario, f"fault plan {plan}")
    legend_of_points(figure, signs)
    title = "Answer format: share solved and tokens a trial"
    models = ", ".join(dict.fromkeys(model_label(run, arm.model) for arm in shown))
    name = slug("study", "answer_format", shown[0].model)
    return finish(figure, name, f"{title}, {models}", f"{title}, by architecture; 95% intervals. Models: {models}.")


def _panel(ax: Axes, shown: Sequence[FormatArm], signs: Mapping[str, Sign], above: bool) -> None:
    names = list(dict.fromkeys(arm.architecture for arm in shown))
    step = 0.8 / len(signs)
    for format_arm in shown:
        x = names.index(format_arm.architecture) + (list(signs).index(format_arm.answer_format) - (len(signs) - 1) / 2) * step
        whisker(ax, x, _share(format_arm.solved) if above else format_arm.tokens, signs[format_arm.answer_format])
    ax.set_xticks(range(len(names)), [name.replace("_", "\n") for name in names])
    ax.set_xlim(-0.5, len(names) - 0.5)
    ax.set_ylim(-0.05 if above else 0, 1.05 if above else None)  # a sign at nothing solved is whole
    ax.set_ylabel("solved" if above else "tokens a trial")
    ax.grid(axis="y", color=PALE, lw=0.6)


def _share(share: Share) -> Mean:
    """Return a share as a mean, for drawing."""
    return Mean(share.n, share.rate, None, share.low, share.high)
