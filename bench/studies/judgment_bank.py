"""A bank of replies: how often a single judgment is right, and how it errs where it is not.

A judgment is asked once in each state of the world that the pack names, by `every_judgment`; a repetition is another seed.
A reply is right where all of it is but what it only notes (`Environment.notes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.analysis.frames import Run
from bench.analysis.statistics import Share, share_by_instance
from bench.errors import ResultsError
from bench.models.bank import BankedReply
from bench.render.cells import Number, Rate
from bench.render.drawing import BLUE, PALE, Picture, finish, panels
from bench.render.labels import model_label, slug
from bench.render.table import Table
from bench.scenario import Json
from bench.studies.by_model import by_model
from bench.worlds.bank import banked

MOST_ERRORS = 8
"""Rows of one judgment in the table of errors; the rest is counted in one."""


@dataclass(frozen=True)
class Judgment:
    """One judgment by one model.

    states     how many different ones it was asked in; `replies` are all, over states and seeds
    right      of the replies, with an interval by instances
    misformed  does not fit its schema; caught: wrong, and a business rule says so; passed: wrong, and nothing says so
    beyond     replies with a number above all that is ever right in its field: an absurd discount
    errors     (field, said, right) -> how often
    """

    scenario: str
    model: str
    name: str
    states: int
    right: Share
    misformed: int
    caught: int
    passed: int
    beyond: int
    errors: Mapping[tuple[str, Json, Json], int]


def judgments(run: Run) -> list[Judgment]:
    """By scenario, model and judgment. Raises ResultsError where the run holds none, or was put together from several."""
    if run.folder is None:
        raise ResultsError("the bank is read from one run; report it alone")
    groups: dict[tuple[str, str, str], list[BankedReply]] = {}
    for model, reply in banked(run.folder):
        groups.setdefault((reply.scenario, model, reply.judgment), []).append(reply)
    if not groups:
        raise ResultsError("the run asked no judgments; it needs the architecture every_judgment")
    return [_judgment(*place, replies) for place, replies in groups.items()]


def _judgment(scenario: str, model: str, name: str, replies: Sequence[BankedReply]) -> Judgment:
    wrong = [reply for reply in replies if reply.output is not None and not reply.is_right]
    caught = sum(bool(reply.rejected) for reply in wrong)
    return Judgment(
        scenario=scenario,
        model=model,
        name=name,
        states=len({(reply.instance, reply.state) for reply in replies}),
        right=share_by_instance([reply.instance for reply in replies], [reply.is_right for reply in replies]),
        misformed=sum(reply.output is None for reply in replies),
        caught=caught,
        passed=len(wrong) - caught,
        beyond=_beyond(replies),
        errors=Counter((field, value, reply.right.get(field)) for reply in wrong for field, value in reply.errors.items()),
    )


def _beyond(replies: Sequence[BankedReply]) -> int:
    most: dict[str, float] = {}
    for reply in replies:
        for field, value in reply.right.items():
            if _is_number(value):
                most[field] = max(value, most.get(field, value))
    return sum(
        any(_is_number(value) and value > most.get(field, value) for field, value in reply.errors.items()) for reply in replies
    )


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def tables(run: Run) -> Iterator[Table]:
    all_judgments = judgments(run)
    yield _rates(run, all_judgments)
    columns = ("Scenario", "Model", "Judgment", "Field", "Said", "Right", "Times", "Of its wrong replies")
    if rows := tuple(_errors(run, all_judgments)):
        yield Table("study-judgment-errors", "How they err, field by field", columns, rows)


def _rates(run: Run, all_judgments: Sequence[Judgment]) -> Table:
    columns = ("Scenario", "Model", "Judgment", "States", "Right", "Not of its form", "Caught", "Passed", "Beyond all right")
    rows = []
    for judgment in all_judgments:
        counts = (judgment.misformed, judgment.caught, judgment.passed, judgment.beyond)
        rows.append(
            (judgment.scenario, model_label(run, judgment.model), judgment.name, judgment.states, Rate(judgment.right), *counts)
        )
    notes = (
        "A reply is right where all of it is but what it only notes. 95% intervals (Wilson) take the number of replies that "
        "the instances count for: replies on one instance are alike.",
        "Caught: wrong, and a business rule of the pack turns it away. Passed: wrong, and no rule does. Beyond all right: a "
        "number above all that is right anywhere in that field, such as an absurd discount.",
    )
    return Table("study-judgments", "Single judgments: how often each is right", columns, tuple(rows), notes)


def _errors(run: Run, all_judgments: Sequence[Judgment]) -> Iterator[tuple[str | int | Number, ...]]:
    for judgment in all_judgments:
        place = (judgment.scenario, model_label(run, judgment.model), judgment.name)
        ranked = sorted(judgment.errors.items(), key=lambda item: (-item[1], str(item[0])))
        wrong = judgment.caught + judgment.passed
        for (field, value, right), times in ranked[:MOST_ERRORS]:
            yield (*place, field, str(value), str(right), times, Number(times / wrong, 1, percent=True))
        if rest := sum(times for _, times in ranked[MOST_ERRORS:]):
            yield (*place, "others", "–", "–", rest, Number(None))


def pictures(run: Run) -> Iterator[Picture]:
    """One figure for each model: how often each judgment is right."""
    for model, of_model in by_model(run, judgments(run)):
        figure, [ax] = panels(1, 1, 5.0, 0.9 + 0.4 * len(of_model))
        for place, judgment in enumerate(of_model):
            share = judgment.right
            if share.rate is not None and share.low is not None and share.high is not None:
                errors = [[share.rate - share.low], [share.high - share.rate]]
                ax.errorbar([share.rate], [place], xerr=errors, fmt="o", ms=4, color=BLUE, capsize=2, lw=0.9)
        ax.set_yticks(range(len(of_model)), [judgment.name.replace("_", " ") for judgment in of_model])
        ax.set_ylim(len(of_model) - 0.5, -0.5)
        ax.set_xlim(-0.03, 1.03)
        ax.set_xlabel("share of replies that are right")
        ax.grid(axis="x", color=PALE, lw=0.6)
        title = f"Single judgments, {model_label(run, model)}"
        numbers = ", ".join(f"{judgment.name} {judgment.right.n}" for judgment in of_model)
        caption = f"{title}: the share that is right, with 95% intervals; replies: {numbers}."
        yield finish(figure, slug("study", "judgment-bank", model), title, caption)
