"""A bank of replies: how often a single judgment is right, and how it errs.

`every_judgment` asks a judgment once in each state of the world that the pack names; a repetition is another seed. A reply is
right if all its fields are, except its notes (`Environment.notes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.common.errors import ResultsError
from bench.read.analysis.frames import Run
from bench.read.analysis.statistics import Share, share_by_instance
from bench.read.render.cells import Number, Rate
from bench.read.render.drawing import BLUE, PALE, Picture, finish, panels
from bench.read.render.labels import model_label, slug
from bench.read.render.table import Table, TableColumn, table_of
from bench.run.models.bank import BankedReply
from bench.scenario import Json
from bench.worlds.run.simulated.bank import replies_in

from ..by_model import by_model

MOST_ERRORS = 8
"""Rows of one judgment in the table of errors. The other errors are counted in one row."""


@dataclass(frozen=True)
class Judgment:
    """One judgment by one model.

    states     number of different states in which it was asked
    right      share of all replies, over states and seeds, with an interval by instances
    misformed  replies that do not fit the schema
    caught     wrong replies that a business rule rejects; passed: wrong replies that no rule rejects
    beyond     replies with a number above every right value of its field: an absurd discount
    errors     (field, reply's value, right value) -> how often
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
    """Return the judgments by scenario, model and name. Raise ResultsError if the run holds none, or was merged from
    several."""
    if run.folder is None:
        raise ResultsError("the bank is read from one run; report it alone")
    groups: dict[tuple[str, str, str], list[BankedReply]] = {}
    for model, reply in replies_in(run.folder):
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
    asked = (
        TableColumn[Judgment]("Scenario", lambda judgment: judgment.scenario),
        TableColumn[Judgment]("Model", lambda judgment: model_label(run, judgment.model)),
        TableColumn[Judgment]("Judgment", lambda judgment: judgment.name),
    )
    yield table_of("study-judgments", "Single judgments: how often each is right", (*asked, *RATES), all_judgments, NOTES)
    columns = (
        *(column.of(_judgment_of) for column in asked),
        TableColumn[WrongField]("Field", lambda wrong: wrong.field),
        TableColumn[WrongField]("Said", lambda wrong: wrong.reply),
        TableColumn[WrongField]("Right", lambda wrong: wrong.right),
        TableColumn[WrongField]("Times", lambda wrong: wrong.times),
        TableColumn[WrongField]("Of its wrong replies", lambda wrong: Number(wrong.share, 1, percent=True)),
    )
    if wrong_fields := [wrong for judgment in all_judgments for wrong in _wrong_fields(judgment)]:
        yield table_of("study-judgment-errors", "How they err, field by field", columns, wrong_fields)


RATES = (
    TableColumn[Judgment]("States", lambda judgment: judgment.states),
    TableColumn[Judgment]("Right", lambda judgment: Rate(judgment.right)),
    TableColumn[Judgment]("Not of its form", lambda judgment: judgment.misformed),
    TableColumn[Judgment]("Caught", lambda judgment: judgment.caught),
    TableColumn[Judgment]("Passed", lambda judgment: judgment.passed),
    TableColumn[Judgment]("Beyond all right", lambda judgment: judgment.beyond),
)
NOTES = (
    "A reply is right if all of it is right, except what it only notes. 95% intervals (Wilson) use the effective number of "
    "replies, because replies on one instance are alike.",
    "Caught: wrong, and a business rule of the pack refuses it. Passed: wrong, and no rule refuses it. Beyond all right: a "
    "number above every right value of that field, for example an absurd discount.",
)


@dataclass(frozen=True)
class WrongField:
    """A wrong value of a field, how often a judgment replied with it, and which share of its wrong replies that is."""

    judgment: Judgment
    field: str
    reply: str
    right: str
    times: int
    share: float | None


def _judgment_of(wrong: WrongField) -> Judgment:
    return wrong.judgment


def _wrong_fields(judgment: Judgment) -> Iterator[WrongField]:
    """Yield the most frequent wrong values, and the others in one row."""
    ranked = sorted(judgment.errors.items(), key=lambda item: (-item[1], str(item[0])))
    for (field, value, right), times in ranked[:MOST_ERRORS]:
        share = times / (judgment.caught + judgment.passed)
        yield WrongField(judgment, field, str(value), str(right), times, share)
    if rest := sum(times for _, times in ranked[MOST_ERRORS:]):
        yield WrongField(judgment, "others", "–", "–", rest, None)


def pictures(run: Run) -> Iterator[Picture]:
    """Yield a figure for each model: how often each judgment is right."""
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
        caption = f"{title}: the share of replies that is right, with its 95% interval. Replies: {numbers}."
        yield finish(figure, slug("study", "judgment-bank", model), title, caption)
