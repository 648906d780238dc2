"""Who&When and AgentRx: the step that people blame for a failure."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import AliasPath, Field, TypeAdapter

from bench.common.bounds import Many
from bench.common.errors import ResultsError, one_line
from bench.elsewhere.formats.members import ItemId, Read
from bench.elsewhere.formats.part import RecordedFormat
from bench.elsewhere.trials import Blame, RecordedRun, RecordedTrial, RecordedTurn, require_unique, trial_of


class BlamedMessage(Read):
    content: str = ""
    role: str = ""
    name: str | None = None


class WhoAndWhen(Read):
    history: Many[BlamedMessage]
    question_ID: ItemId  # noqa: N815
    mistake_agent: str
    mistake_step: ItemId


def who_and_when_run(where: str, run: WhoAndWhen) -> RecordedRun:
    """Return a failed run of Who&When, with the blamed step counted from 0."""
    if not run.mistake_step.isascii() or not run.mistake_step.isdigit() or len(run.mistake_step) > 6:
        raise ResultsError(f"{where}: the blamed step is no number: {one_line(run.mistake_step, 40)}")
    step = int(run.mistake_step)
    if step >= len(run.history):
        raise ResultsError(f"{where}: the blamed step {step} is none of the {len(run.history)} messages")
    turns = [RecordedTurn(message.name or message.role, message.content) for message in run.history]
    blamed = (Blame(step, run.mistake_agent),)
    return RecordedRun("Who&When", (trial_of(where, turns, run.question_ID, "0", solved=False, blames=blamed),))


class RxFailure(Read):
    failure_id: int
    step_number: int = Field(ge=1, le=1_000_000)
    failed_agent: str = ""


class RxLabels(Read):
    trajectory_id: ItemId
    failures: Many[RxFailure]
    root: int = Field(validation_alias=AliasPath("root_cause", "failure_id"))


def agentrx_run(where: str, values: Sequence[RxLabels]) -> RecordedRun:
    """Return AgentRx's labels, without turns: the trajectories stand in other files. The root cause is the first blame, and
    steps count from 0."""
    trials = []
    for each in values:
        roots = [failure for failure in each.failures if failure.failure_id == each.root]
        if len(roots) != 1:
            raise ResultsError(f"{where}: {one_line(each.trajectory_id, 60)} has {len(roots)} failures of its root cause's id")
        ordered = [*roots, *(failure for failure in each.failures if failure is not roots[0])]
        blames = tuple(Blame(each.step_number - 1, each.failed_agent) for each in ordered)
        trials.append(RecordedTrial(each.trajectory_id, "0", (), (), solved=False, blames=blames))
    return RecordedRun("AgentRx labels", require_unique(where, trials))


FORMATS = (
    RecordedFormat("Who&When", frozenset({"mistake_step", "history"}), TypeAdapter(WhoAndWhen), who_and_when_run),
    RecordedFormat("AgentRx", frozenset({"failures", "root_cause"}), TypeAdapter(Many[RxLabels]), agentrx_run, each=True),
)
