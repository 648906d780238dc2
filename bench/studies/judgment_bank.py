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
from bench.render.drawing import BLUE, PALE, Picture, finish, panels
from bench.render.labels import model_label, slug
from bench.render.table import Number, Rate, Table
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
    wrong = [one for one in replies if one.output is not None and not one.is_right]
    caught = sum(bool(one.rejected) for one in wrong)
    return Judgment(
        scenario=scenario,
        model=model,
        name=name,
        states=len({(one.instance, one.state) for one in replies}),
        right=share_by_instance([one.instance for one in replies], [one.is_right for one in replies]),
        misformed=sum(one.output is None for one in replies),
        caught=caught,
        passed=len(wrong) - caught,
        beyond=_beyond(replies),
        errors=Counter((field, said, one.right.get(field)) for one in wrong for field, said in one.errors.items()),
    )


def _beyond(replies: Sequence[BankedReply]) -> int:
    most: dict[str, float] = {}
    for reply in replies:
        for field, value in reply.right.items():
            if _is_number(value):
                most[field] = max(value, most.get(field, value))
    return sum(any(_is_number(said) and said > most.get(field, said) for field, said in one.errors.items()) for one in replies)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def tables(run: Run) -> Iterator[Table]:
    found = judgments(run)
    yield _rates(run, found)
    columns = ("Scenario", "Model", "Judgment", "Field", "Said", "Right", "Times", "Of its wrong replies")
    if rows := tuple(_errors(run, found)):
        yield Table("study-judgment-errors", "How they err, field by field", columns, rows)


def _rates(run: Run, found: Sequence[Judgment]) -> Table:
    columns = ("Scenario", "Model", "Judgment", "States", "Right", "Not of its form", "Caught", "Passed", "Beyond all right")
    rows = []
    for one in found:
        counts = (one.misformed, one.caught, one.passed, one.beyond)
        rows.append((one.scenario, model_label(run, one.model), one.name, one.states, Rate(one.right), *counts))
    notes = (
        "A reply is right where all of it is but what it only notes. 95% intervals (Wilson) take the number of replies that "
        "the instances count for: replies on one instance are alike.",
        "Caught: wrong, and a business rule of the pack turns it away. Passed: wrong, and no rule does. Beyond all right: a "
        "number above all that is right anywhere in that field, such as an absurd discount.",
    )
    return Table("study-judgments", "Single judgments: how often each is right", columns, tuple(rows), notes)


def _errors(run: Run, found: Sequence[Judgment]) -> Iterator[tuple[str | int | Number, ...]]:
    for one in found:
        place = (one.scenario, model_label(run, one.model), one.name)
        ranked = sorted(one.errors.items(), key=lambda item: (-item[1], str(item[0])))
        wrong = one.caught + one.passed
        for (field, said, right), times in ranked[:MOST_ERRORS]:
            yield (*place, field, str(said), str(right), times, Number(times / wrong, 1, percent=True))
        if rest := sum(times for _, times in ranked[MOST_ERRORS:]):
            yield (*place, "others", "–", "–", rest, Number(None))


def pictures(run: Run) -> Iterator[Picture]:
    """One figure for each model: how often each judgment is right."""
    for model, own in by_model(run, judgments(run)):
        figure, [ax] = panels(1, 1, 5.0, 0.9 + 0.4 * len(own))
        for place, one in enumerate(own):
            share = one.right
            if share.rate is not None and share.low is not None and share.high is not None:
                errors = [[share.rate - share.low], [share.high - share.rate]]
                ax.errorbar([share.rate], [place], xerr=errors, fmt="o", ms=4, color=BLUE, capsize=2, lw=0.9)
        ax.set_yticks(range(len(own)), [one.name.replace("_", " ") for one in own])
        ax.set_ylim(len(own) - 0.5, -0.5)
        ax.set_xlim(-0.03, 1.03)
        ax.set_xlabel("share of replies that are right")
        ax.grid(axis="x", color=PALE, lw=0.6)
        title = f"Single judgments, {model_label(run, model)}"
        numbers = ", ".join(f"{one.name} {one.right.n}" for one in own)
        caption = f"{title}: the share that is right, with 95% intervals; replies: {numbers}."
        yield finish(figure, slug("study", "judgment-bank", model), title, caption)
