"""Proposals made at the same time, subtasks made at run time, and what asks for what cannot be there."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence

import pytest
from scripted_model import ScriptedModel
from trials import ROOTS, conducted, events

from bench.common.errors import BadAnswer, GaveUp
from bench.record import ledger
from bench.record.events import Answered, Called, Committed
from bench.record.messages import Message
from bench.run.models.base import Request
from bench.run.models.simulated import SimulatedModel, SimulatedSettings
from bench.run.packs import load_pack
from bench.run.trial.workbench import ModelLine, Workbench
from bench.scenario import Output, Subtask, Task

ORCHARD = load_pack("orchard", ROOTS)
PACK = f"orchard/{ORCHARD.instance}"
SECONDS = {"apples": 3.0, "pears": 5.0, "store": 2.0, "note": 1.0}


class Note(Output):
    text: str


def model() -> ScriptedModel:
    def seconds(request: Request) -> float:
        return SECONDS[request.context.subtasks[0]]

    return ScriptedModel({**ORCHARD.reference, "note": {"text": "many"}}, seconds=seconds)


async def make(workbench: Workbench, subtask: Subtask) -> None:
    proposal = await workbench.propose(subtask)
    assert workbench.verify(proposal) is None
    workbench.commit(proposal)


async def all_that_is_ready(_: Task, workbench: Workbench) -> None:
    while ready := workbench.ready():
        await asyncio.gather(*(make(workbench, subtask) for subtask in ready))


def test_what_is_ready_is_asked_together_and_takes_the_critical_paths_seconds() -> None:
    result = conducted(all_that_is_ready, pack=PACK, model=model())
    assert result.record.outcome == "solved", result.record.reason
    assert (result.record.api_seconds, result.record.waiting_seconds) == (7.0, 0.0)
    assert [(call.subtasks[0], call.started, call.cause) for call in events(result, Called)] == [
        ("apples", 0.0, "first"),
        ("pears", 0.0, "first"),
        ("store", 5.0, "first"),
    ]
    assert {entry.account for entry in ledger.book(result.record.events)} == {"in_answer"}


def test_a_task_group_gives_up_and_fails_as_what_is_in_it_does() -> None:
    async def insist(workbench: Workbench, subtask: Subtask) -> None:
        while workbench.verify(await workbench.propose(subtask)):
            pass

    async def grouped(_: Task, workbench: Workbench) -> None:
        async with asyncio.TaskGroup() as group:
            for subtask in workbench.ready():
                group.create_task(insist(workbench, subtask))

    tired = ScriptedModel(ORCHARD.reference, {"apples": ["{}"] * 9}, seconds=lambda _: 1.0)
    assert conducted(grouped, pack=PACK, model=tired).record.reason == "apples: no accepted output in 3 attempts"
    failing = ScriptedModel(ORCHARD.reference, {"apples": [BadAnswer("HTTP 400: no")]}, seconds=lambda _: 1.0)
    assert conducted(grouped, pack=PACK, model=failing).record.reason == "bad_answer: HTTP 400: no"


def test_what_is_ready_follows_what_is_done() -> None:
    async def architecture(task: Task, workbench: Workbench) -> None:
        apples, pears, store = task.subtasks
        assert workbench.ready() == (apples, pears)
        await make(workbench, pears)
        assert workbench.ready() == (apples,)
        await make(workbench, apples)
        assert workbench.ready() == (store,)
        await make(workbench, store)
        assert workbench.ready() == ()

    assert conducted(architecture, pack=PACK, model=model()).record.outcome == "solved"


def test_a_hundred_runs_side_by_side_have_one_result() -> None:
    records = [conducted(all_that_is_ready, pack=PACK, model=model()).record for _ in range(100)]
    assert {(record.events, record.api_seconds, record.tokens) for record in records} == {
        (records[0].events, records[0].api_seconds, records[0].tokens)
    }


def note_of(*reads: str) -> Subtask:
    return Subtask("note", "Note what is remarkable.", reads, Note)


async def with_a_note(task: Task, workbench: Workbench) -> None:
    apples, pears, store = task.subtasks
    await make(workbench, apples)
    workbench.add(note_of("apples"))
    assert workbench.ready() == (pears, note_of("apples"))
    await make(workbench, note_of("apples"))
    await make(workbench, pears)
    await make(workbench, store)


def test_a_subtask_made_at_run_time_is_asked_like_any_other_and_is_no_part_of_the_answer() -> None:
    result = conducted(with_a_note, pack=PACK, model=model())
    assert result.record.outcome == "solved", result.record.reason
    [answer] = events(result, Answered)
    assert [name for name, _ in answer.versions] == ["apples", "pears", "store"]
    assert [commit.made_from[0][0] for commit in events(result, Committed) if commit.subtask == "note"] == ["apples"]
    accounts = {entry.call.subtasks[0]: entry.account for entry in ledger.book(result.record.events)}
    assert accounts == {"apples": "in_answer", "note": "superseded", "pears": "in_answer", "store": "in_answer"}


def test_the_simulated_model_answers_what_was_made_at_run_time() -> None:
    result = conducted(with_a_note, pack=PACK, model=SimulatedModel("m", SimulatedSettings(), {ORCHARD.key: ORCHARD}))
    assert result.record.outcome == "solved", result.record.reason


@pytest.mark.parametrize(("failure_rate", "text"), [(0.0, "many"), (1.0, None)])
def test_the_simulated_model_answers_by_the_reference_that_came_with_it(failure_rate: float, text: str | None) -> None:
    outputs: list[Output | None] = []

    async def architecture(_: Task, workbench: Workbench) -> None:
        note = note_of()
        workbench.add(note, reference={"text": "many"})
        workbench.commit_unverified(await workbench.propose(note))
        outputs.append(workbench.output(note))
        raise GaveUp([note.name], "it was only to be noted")

    simulated = SimulatedModel("m", SimulatedSettings(failure_rate=failure_rate), {ORCHARD.key: ORCHARD})
    assert conducted(architecture, pack=PACK, model=simulated).record.outcome == "gave_up"
    assert outputs == [Note(text=text) if text else None]


def test_what_was_planned_stands_on_its_plan_and_is_not_shown_it() -> None:
    async def architecture(task: Task, workbench: Workbench) -> None:
        workbench.add(note_of())
        await make(workbench, note_of())
        for subtask in task.subtasks:
            workbench.commit_unverified(await workbench.propose(subtask, planned_by=note_of()))

    asked = model()
    result = conducted(architecture, pack=PACK, model=asked)
    assert result.record.outcome == "solved", result.record.reason
    assert {entry.account for entry in ledger.book(result.record.events)} == {"in_answer"}
    assert all("many" not in request.messages[1].content for request in asked.requests)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (Subtask("apples", "again", (), Note), "the name 'apples' is taken"),
        (Subtask("pears.txt", "a document", (), Note), "the name 'pears.txt' is taken"),
        (Subtask("note", "of nothing", ("plums",), Note), "subtask 'note' reads 'plums', which does not exist"),
    ],
)
def test_a_name_that_is_taken_and_reads_that_do_not_exist_are_refused(made: Subtask, why: str) -> None:
    async def architecture(_: Task, workbench: Workbench) -> None:
        with pytest.raises(ValueError, match=why):
            workbench.add(made)
        await all_that_is_ready(_, workbench)

    assert conducted(architecture, pack=PACK, model=model()).record.outcome == "solved"


# -- a bug in an architecture -----------------------------------------------------------------------------------------------


async def asks_too_early(task: Task, workbench: Workbench) -> None:
    await make(workbench, task.subtasks[0])
    await workbench.propose(task.subtasks[2])


async def commits_unverified(task: Task, workbench: Workbench) -> None:
    workbench.commit(await workbench.propose(task.subtasks[0]))


async def commits_rejected(task: Task, workbench: Workbench) -> None:
    proposal = await workbench.propose(task.subtasks[0])
    workbench.reject(proposal, "by nature")
    workbench.commit(proposal)


async def commits_what_was_accepted_and_then_rejected(task: Task, workbench: Workbench) -> None:
    proposal = await workbench.propose(task.subtasks[0])
    workbench.verify(proposal)
    workbench.reject(proposal, "on second thoughts")
    workbench.commit(proposal)


@pytest.mark.parametrize(
    ("architecture", "line"),
    [
        (asks_too_early, "'store' is asked for before 'pears', which it reads, has an output"),
        (commits_unverified, "commit of 'apples', which was not verified or was rejected; verify it, or commit_unverified"),
        (commits_rejected, "commit of 'apples', which was not verified or was rejected"),
        (commits_what_was_accepted_and_then_rejected, "commit of 'apples', which was not verified or was rejected"),
    ],
)
def test_what_must_not_be_done_ends_the_trial_with_its_place_and_its_traceback(architecture: object, line: str) -> None:
    result = conducted(architecture, pack=PACK, model=model())  # type: ignore[arg-type]
    record = result.record
    assert record.outcome == "error"
    assert record.reason.startswith(f"RuntimeError: {line}")
    last = inspect.getsourcelines(architecture)[1] + len(inspect.getsourcelines(architecture)[0]) - 1  # type: ignore[arg-type]
    assert f"(trial/test_parallel.py:{last}, after a call for apples)" in record.reason
    assert record.traceback is not None
    traceback = result.texts[record.traceback]
    assert traceback.startswith("Traceback (most recent call last):")
    assert line in traceback


# -- nothing outlives its trial ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_samples", [False, True])
def test_a_call_in_flight_when_the_trial_ends_is_in_its_account_and_nothing_is_asked_afterwards(by_samples: bool) -> None:
    """One of two proposals fails for good; the other one's call is paid, and its next turn is never made."""

    async def architecture(task: Task, workbench: Workbench) -> None:
        async def by(messages: Sequence[Message], line: ModelLine) -> str:
            await line(messages)
            return (await line([*messages, Message("user", "more")])).text

        apples, pears, _ = task.subtasks
        if by_samples:
            await workbench.sample(apples, count=2, by=by)
        else:
            await asyncio.gather(workbench.propose(apples), workbench.propose(pears, by=by))

    def seconds(request: Request) -> float:
        return 5.0 if request.context.sample == 2 or request.context.subtasks == ("pears",) else 1.0

    failing = ScriptedModel(ORCHARD.reference, {"apples": [BadAnswer("HTTP 400")]}, seconds)
    failing.concurrency = 9
    result = conducted(architecture, pack=PACK, model=failing)
    assert (result.record.outcome, result.record.reason) == ("error", "bad_answer: HTTP 400")
    failed, abandoned = events(result, Called)
    assert (failed.failure, abandoned.failure) == ("bad_answer", "timed_out")
    assert abandoned.tokens_in > 0
    assert ledger.imbalance(ledger.book(result.record.events), result.record.tokens) is None
    assert len(failing.requests) == 2
