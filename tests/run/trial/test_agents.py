"""Agents of several turns and planned redundancy: in process and over the endpoint their tokens are booked as what they were.

An agent is a dialogue with the model about one subtask. `worked` lets it make the subtasks of `tiny` one after another, on the
line of the workbench or as a real client of the measuring endpoint.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence

import pytest
from agents import (
    BAD,
    PLAN,
    Agent,
    Ask,
    best_of_three,
    checked_by_itself,
    client_of,
    in_process,
    over_the_endpoint,
    plan_then_answer,
    say,
    three_turns,
)
from scripted_model import Line
from trials import TINY, Fault, conducted, events

from bench.record import ledger
from bench.record.events import Called, Committed, Judged
from bench.record.messages import Message
from bench.run.endpoint.server import serve_session
from bench.run.experiment.trial import TrialResult
from bench.run.models.simulated import SimulatedModel, SimulatedSettings
from bench.run.trial.workbench import LineReply, ModelLine, Workbench
from bench.scenario import Task

NAMES = [subtask.name for subtask in TINY.task.subtasks]
GOOD = {name: json.dumps(output) for name, output in TINY.reference.items()}
OTHER_GOOD = '{"unit": "apples", "total": 42}'


@pytest.fixture(params=[in_process, over_the_endpoint])
def worked(request: pytest.FixtureRequest) -> Callable[..., TrialResult]:
    """A trial in which an agent makes every subtask; its ledger adds up."""

    def trial(agent: Agent, script: Mapping[str, Sequence[Line]] | None = None, faults: Sequence[Fault] = ()) -> TrialResult:
        result = conducted(request.param(agent), script, faults, server=serve_session)
        assert result.record.outcome == "solved", result.record.reason
        assert ledger.imbalance(ledger.book(result.record.events), result.record.tokens) is None
        return result

    return trial


def accounts(result: TrialResult) -> list[tuple[str, str, str]]:
    """(subtask, cause, account) of each call."""
    return [(entry.call.subtasks[0], entry.call.cause, entry.account) for entry in ledger.book(result.record.events)]


def of_total(result: TrialResult) -> list[tuple[str, str]]:
    return [(cause, account) for name, cause, account in accounts(result) if name == "total"]


def retry_tokens(result: TrialResult) -> int:
    return sum(entry.tokens for entry in ledger.book(result.record.events) if entry.is_retry)


def commit_of(result: TrialResult, name: str) -> Committed:
    return next(commit for commit in events(result, Committed) if commit.subtask == name)


Worked = Callable[..., TrialResult]


def test_three_turns_that_all_give_an_output_are_all_in_the_answer(worked: Worked) -> None:
    result = worked(three_turns)
    assert accounts(result) == [(name, cause, "in_answer") for name in NAMES for cause in ("first", "step", "step")]
    assert retry_tokens(result) == 0
    assert commit_of(result, "total").calls == (4, 5, 6)


def test_a_plan_and_the_answer_after_it_made_the_output_together(worked: Worked) -> None:
    script: dict[str, list[Line]] = {name: [PLAN, None] for name in NAMES}
    result = worked(plan_then_answer, script)
    assert accounts(result) == [(name, cause, "in_answer") for name in NAMES for cause in ("first", "step")]
    assert retry_tokens(result) == 0
    assert {call.inferred for call in events(result, Called) if call.cause == "step"} == {True}


def test_samples_that_were_not_taken_are_redundant_and_nothing_is_a_retry(worked: Worked) -> None:
    result = worked(best_of_three, {"total": [GOOD["total"], '{"total": 41, "unit": "apples"}', OTHER_GOOD]})
    assert of_total(result) == [("first", "in_answer"), ("sample", "redundant"), ("sample", "redundant")]
    assert retry_tokens(result) == 0
    assert commit_of(result, "total").calls == (4,)
    assert len({call.seed for call in events(result, Called)}) == 3


def test_a_reply_that_an_agent_returns_is_known_by_its_call_though_another_has_the_same_text() -> None:
    async def first_of_two(messages: Sequence[Message], line: ModelLine) -> LineReply:
        first, _ = await line(messages), await line(messages)
        return first

    async def architecture(task: Task, workbench: Workbench) -> None:
        for subtask in task.subtasks:
            proposal = await workbench.propose(subtask, by=first_of_two)
            assert workbench.verify(proposal) is None
            workbench.commit(proposal)

    result = conducted(architecture, {name: [GOOD[name], GOOD[name]] for name in NAMES})
    assert [commit.calls for commit in events(result, Committed)] == [(2 * number + 1,) for number in range(len(NAMES))]


def test_a_vote_of_three_is_one_attempt_with_one_sample_in_the_answer() -> None:
    async def vote(task: Task, workbench: Workbench) -> None:
        for subtask in task.subtasks:
            _, taken, _ = await workbench.sample(subtask, count=3)
            assert workbench.verify(taken) is None
            workbench.commit(taken)

    result = conducted(vote)
    assert result.record.outcome == "solved"
    assert accounts(result) == [
        (name, cause, account)
        for name in NAMES
        for cause, account in (("first", "redundant"), ("sample", "in_answer"), ("sample", "redundant"))
    ]
    assert retry_tokens(result) == 0
    assert ledger.imbalance(ledger.book(result.record.events), result.record.tokens) is None
    assert result.record.api_seconds == 3.0, "they overlap"


@pytest.mark.parametrize("agent", [three_turns, plan_then_answer, best_of_three])
def test_on_a_simulated_model_without_failures_no_agent_has_retry_tokens(agent: Agent) -> None:
    model = SimulatedModel("m", SimulatedSettings(), {"tiny": TINY})
    for architecture in (in_process(agent), over_the_endpoint(agent)):
        result = conducted(architecture, model=model, server=serve_session)
        entries = ledger.book(result.record.events)
        assert (result.record.outcome, retry_tokens(result)) == ("solved", 0)
        assert ledger.imbalance(entries, result.record.tokens) is None
        assert {entry.account for entry in entries} == ({"in_answer", "redundant"} if agent is best_of_three else {"in_answer"})


def test_an_agent_that_checks_by_itself_makes_a_retry_that_a_shadow_verdict_caused(worked: Worked) -> None:
    result = worked(checked_by_itself, {"total": [BAD]})
    assert of_total(result) == [("first", "rejected"), ("retry", "in_answer")]
    bad, again = (call for call in events(result, Called) if call.subtasks == ("total",))
    assert (again.attempt, again.inferred, bad.inferred) == (2, True, False)
    assert again.caused_by is not None
    verdict = result.record.events[again.caused_by]
    assert isinstance(verdict, Judged)
    assert (verdict.view, verdict.accepted, verdict.subtask, verdict.calls) == ("shadow", False, "total", (bad.call,))
    assert commit_of(result, "total").calls == (again.call,)
    assert retry_tokens(result) == again.tokens_in + again.tokens_out


def test_a_plan_before_a_rejected_answer_is_still_part_of_the_next_one(worked: Worked) -> None:
    async def planned_and_checked(messages: Sequence[Message], ask: Ask) -> str:
        plan = await ask([*messages, say("Plan first, in words.")])
        return await checked_by_itself([*messages, Message("assistant", plan), say("Now answer.")], ask)

    result = worked(planned_and_checked, {"gather": [PLAN], "total": [PLAN, BAD], "review": [PLAN]})
    assert of_total(result) == [("first", "in_answer"), ("step", "rejected"), ("retry", "in_answer")]


def test_a_reply_in_words_that_was_proposed_and_rejected_is_no_part_of_the_next_output() -> None:
    async def architecture(task: Task, workbench: Workbench) -> None:
        async with workbench.endpoint(*task.subtasks) as session:
            for subtask in task.subtasks:
                ask = client_of(session, subtask)
                proposal = session.proposal(await ask(session.messages(subtask)), subtask)
                while rejected := workbench.verify(proposal):
                    proposal = session.proposal(await ask([*session.messages(subtask), say(rejected.detail)]), subtask)
                workbench.commit(proposal)

    result = conducted(architecture, {"total": ["about forty"]}, server=serve_session)
    assert result.record.outcome == "solved"
    assert of_total(result) == [("first", "rejected"), ("retry", "in_answer")]
    assert not any(call.inferred for call in events(result, Called)), "it was told"


def test_a_text_is_matched_to_the_reply_that_says_the_same(worked: Worked) -> None:
    async def first_of_three_written_anew(messages: Sequence[Message], ask: Ask) -> str:
        return json.dumps(json.loads(await best_of_three(messages, ask)), indent=4)

    wrong = '{"total": 41, "unit": "apples"}'
    result = worked(first_of_three_written_anew, {"total": [None, wrong, wrong]})
    assert of_total(result) == [("first", "in_answer"), ("sample", "redundant"), ("sample", "redundant")]


def test_one_proposal_of_several_subtasks_is_made_of_each_ones_own_replies() -> None:
    async def architecture(task: Task, workbench: Workbench) -> None:
        async with workbench.endpoint(*task.subtasks) as session:
            texts = {}
            for subtask in task.subtasks:
                texts[subtask.name] = json.loads(await client_of(session, subtask)([say(f"Make {subtask.name}.")]))
            proposal = session.proposal(json.dumps(texts))
            assert workbench.verify(proposal) is None
            workbench.commit(proposal)

    result = conducted(architecture, server=serve_session)
    assert accounts(result) == [(name, "first", "in_answer") for name in NAMES]


def test_agents_at_work_at_the_same_time_do_not_cause_each_others_calls() -> None:
    """The apples' agent repairs its own output while the pears' agent looks again: its turns stay steps."""

    async def architecture(task: Task, workbench: Workbench) -> None:
        async def by(messages: Sequence[Message], line: ModelLine) -> str:
            for number in range(2):
                reply = (await line([*messages, say(str(number))])).text
            return reply

        apples, pears, store = task.subtasks
        for proposal in await asyncio.gather(workbench.propose(apples, by=by), workbench.propose(pears, by=by)):
            assert workbench.verify(proposal) is None
            workbench.commit(proposal)
        workbench.commit_unverified(await workbench.propose(store))

    result = conducted(architecture, {"apples": [{"crates": 1, "trees": 3}]}, pack="orchard")
    by_subtask = {(call.subtasks[0], call.cause, call.attempt) for call in events(result, Called)}
    assert {key for key in by_subtask if key[0] == "pears"} == {("pears", "first", 1), ("pears", "step", 1)}
    assert {key for key in by_subtask if key[0] == "apples"} == {("apples", "first", 1), ("apples", "retry", 2)}


def test_agents_that_are_samples_of_one_attempt_keep_their_own_turns() -> None:
    async def architecture(task: Task, workbench: Workbench) -> None:
        async def by(messages: Sequence[Message], line: ModelLine) -> str:
            await line([*messages, say("Plan.")])
            return (await line([*messages, say("Answer.")])).text

        for subtask in task.subtasks:
            taken, _ = await workbench.sample(subtask, count=2, by=by)
            assert workbench.verify(taken) is None
            workbench.commit(taken)

    result = conducted(architecture)
    total = [call for call in events(result, Called) if call.subtasks == ("total",)]
    assert sorted((call.sample, call.cause) for call in total) == [(1, "first"), (1, "step"), (2, "sample"), (2, "step")]
    assert commit_of(result, "total").calls == tuple(call.call for call in total if call.sample == 1)
    assert [entry.account for entry in ledger.book(result.record.events) if entry.call.sample == 2] == ["redundant"] * 6
