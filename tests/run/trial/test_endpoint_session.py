"""A session at the endpoint: what is a try, a turn, an attempt, a judge call, and what a framework makes of the replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from scripted_model import Line
from trials import GRADERS, ROOTS, TINY, Fault, conducted, events, matrix_of, stages, verdicts

from bench.common.errors import CallFailed, CutOff, RateLimited, ServerFailed
from bench.record.events import Called, Judged, Waited
from bench.record.messages import Message
from bench.run.answers.fenced import write_answer
from bench.run.experiment.trial import TrialResult, run_trial
from bench.run.models.base import Reply
from bench.run.packs import load_pack
from bench.run.trial.endpoint_session import EndpointSession
from bench.run.trial.gate import Gate
from bench.run.trial.loop import run
from bench.run.trial.schema import answer_schema
from bench.run.trial.slots import Slots
from bench.run.trial.workbench import Workbench
from bench.scenario import Task

GATHER, TOTAL, REVIEW = TINY.task.subtasks
HELLO, OTHER = (Message("user", "hello"),), (Message("user", "something else"),)
GATHERED = json.dumps(TINY.reference["gather"])

Work = Callable[[Workbench, EndpointSession], Awaitable[None]]


@asynccontextmanager
async def unserved(_: EndpointSession) -> AsyncIterator[str]:
    """No endpoint: the tests ask the endpoint itself."""
    yield "http://here"


def served(
    work: Work, script: Sequence[Line] = (), faults: Sequence[Fault] = (), review: Sequence[Line] = (), **options: Any
) -> TrialResult:
    """One trial in which `work` has a session for all subtasks, and scripts for `gather` and `review`."""

    async def architecture(task: Task, workbench: Workbench) -> None:
        async with workbench.endpoint(*task.subtasks, server=unserved, **options) as endpoint:
            await work(workbench, endpoint)

    return conducted(architecture, {"gather": script, "review": review}, faults)


async def ask(endpoint: EndpointSession, messages: tuple[Message, ...] = HELLO) -> str | None:
    """The reply's text; None where the call failed."""
    try:
        return (await endpoint.answer((GATHER,), messages)).text
    except CallFailed:
        return None


def tries(result: TrialResult) -> list[tuple[int, int, str]]:
    return [(call.attempt, call.try_, call.cause) for call in events(result, Called)]


def test_a_repeated_request_is_a_try_after_a_failure_and_else_a_sample() -> None:
    async def work(_: Workbench, endpoint: EndpointSession) -> None:
        for messages in (HELLO, HELLO, OTHER, OTHER):
            await ask(endpoint, messages)

    result = served(work, [ServerFailed("500")])
    assert tries(result) == [(1, 1, "first"), (1, 2, "first"), (1, 1, "step"), (1, 1, "sample")]


def test_an_agent_that_repeats_a_request_without_end_is_refused_and_the_trial_gives_up() -> None:
    """Under a fault that strikes every request nothing else would end it."""
    fault = {"point": "call", "effect": "rate_limit", "attempts": "every"}

    async def work(_: Workbench, endpoint: EndpointSession) -> None:
        while True:
            await ask(endpoint)

    for limit in ("attempts", "calls"):
        result = served(work, faults=[fault], limit=limit)
        assert (result.record.outcome, result.record.reason) == ("gave_up", "gather: no reply after 100 tries")
        assert [call.try_ for call in events(result, Called)] == list(range(1, 101))


def test_a_try_after_a_reply_that_was_paid_and_lost_is_a_retry() -> None:
    async def work(_: Workbench, endpoint: EndpointSession) -> None:
        await ask(endpoint)
        await ask(endpoint)

    assert tries(served(work, [CutOff("broke", partial="half")])) == [(1, 1, "first"), (1, 2, "retry")]


def test_two_failed_requests_of_the_same_words_are_each_repeated_once() -> None:
    async def work(_: Workbench, endpoint: EndpointSession) -> None:
        endpoint.expect(2)
        for _try in range(2):
            await asyncio.gather(ask(endpoint), ask(endpoint))

    result = served(work, [ServerFailed("500"), ServerFailed("500")])
    assert sorted((call.sample, call.try_, call.cause) for call in events(result, Called)) == [
        (1, 1, "first"),
        (1, 2, "first"),
        (2, 1, "sample"),
        (2, 2, "sample"),
    ]


def test_the_time_between_a_failure_and_its_repetition_is_back_off() -> None:
    async def work(_: Workbench, endpoint: EndpointSession) -> None:
        await ask(endpoint)
        await asyncio.sleep(0.05)
        await ask(endpoint)

    result = served(work, [RateLimited("429", retry_after=0.05)])
    [wait] = events(result, Waited)
    assert (wait.why, wait.started) == ("backoff", 1.0)
    assert wait.seconds >= 0.05
    assert result.record.waiting_seconds == pytest.approx(wait.seconds)
    assert events(result, Called)[1].started == pytest.approx(1.0 + wait.seconds)


def test_an_exception_after_a_failure_that_was_mended_is_the_frameworks_own() -> None:
    async def work(_: Workbench, endpoint: EndpointSession) -> None:
        assert await ask(endpoint) is None
        assert await ask(endpoint) == GATHERED
        raise ValueError("of its own")

    assert served(work, [ServerFailed("500")]).record.reason.startswith(
        "ValueError: of its own (trial/test_endpoint_session.py:"
    )


def test_judge_calls_are_told_by_their_messages_and_carry_no_faults() -> None:
    async def work(_: Workbench, endpoint: EndpointSession) -> None:
        assert await ask(endpoint) is None
        assert await ask(endpoint, OTHER) == GATHERED
        assert not endpoint.has_reply("gather")
        assert await ask(endpoint) == GATHERED
        assert endpoint.has_reply("gather")

    fault = {"point": "call", "effect": "server_error", "attempts": [1]}
    result = served(work, faults=[fault], judges=lambda messages: messages == OTHER)
    assert tries(result) == [(1, 1, "first"), (1, 1, "judge"), (1, 2, "first")]


def test_what_a_framework_made_of_a_reply_is_verified_like_any_proposal() -> None:
    async def work(workbench: Workbench, endpoint: EndpointSession) -> None:
        await ask(endpoint)
        assert workbench.verify(endpoint.proposal("no JSON at all", GATHER))
        assert workbench.verify(endpoint.proposal(GATHERED, GATHER)) is None

    assert verdicts(served(work)) == [("gather", "not_json"), ("gather", "accepted")]


def test_how_a_reply_finished_says_nothing_about_what_was_made_of_it() -> None:
    async def work(workbench: Workbench, endpoint: EndpointSession) -> None:
        await ask(endpoint)
        assert workbench.verify(endpoint.proposal("filtered", GATHER))
        assert workbench.verify(endpoint.proposal(GATHERED, GATHER)) is None

    assert verdicts(served(work, [Reply("filtered", "content_filter")]))[0] == ("gather", "refusal")


def test_one_reply_for_all_subtasks_is_each_ones() -> None:
    async def work(workbench: Workbench, endpoint: EndpointSession) -> None:
        await endpoint.answer(endpoint.subtasks, HELLO)
        for subtask in endpoint.subtasks:
            workbench.commit_unverified(endpoint.proposal(json.dumps(TINY.reference[subtask.name]), subtask))

    result = served(work)
    assert result.record.outcome == "solved"
    assert [call.subtasks for call in events(result, Called)] == [("gather", "total", "review")]


def test_there_is_no_proposal_without_a_reply() -> None:
    async def work(_: Workbench, endpoint: EndpointSession) -> None:
        await ask(endpoint)
        endpoint.proposal(GATHERED, TOTAL)

    assert served(work).record.reason.startswith("RuntimeError: no reply ever came for total (")


def test_a_fault_in_what_was_read_is_detected_where_its_reply_is_rejected() -> None:
    async def work(workbench: Workbench, endpoint: EndpointSession) -> None:
        endpoint.messages(GATHER)
        await ask(endpoint)
        workbench.verify(endpoint.proposal("no JSON", GATHER))

    fault = {"point": "input", "effect": "empty", "subtask": "gather", "attempts": [1]}
    assert stages(served(work, faults=[fault])) == {1: ["planned", "delivered", "detected", "gave_up"]}


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("", ["gather", "total", "review"]),
        ("total", ["total"]),
        ("total+gather", ["total", "gather"]),
        ("nobody", None),
        ("gather+", None),
        ("gather+gather", None),
    ],
)
def test_an_address_names_its_subtasks(path: str, names: list[str] | None) -> None:
    async def work(_: Workbench, endpoint: EndpointSession) -> None:
        named.append(endpoint.subtasks_at(path))
        assert endpoint.base_url() == "http://here/v1"
        assert endpoint.base_url(GATHER, REVIEW) == "http://here/gather+review/v1"

    named: list[Any] = []
    served(work)
    assert (named[0] and [subtask.name for subtask in named[0]]) == names


def test_a_client_that_leaves_while_its_call_waits_for_a_slot_paid_nothing() -> None:
    async def architecture(_: Task, workbench: Workbench) -> None:
        async with workbench.endpoint(GATHER, server=unserved) as endpoint:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(ask(endpoint), 0.05)

    matrix = matrix_of(architectures=["static"]).with_architecture(architecture)
    taken = Gate(1)
    taken.shut()
    result = run(run_trial(matrix.specs[0], matrix, Slots(lambda _: taken), GRADERS))
    [call] = events(result, Called)
    assert (call.failure, call.asked, call.tokens_in, call.seconds) == ("unreachable", False, 0, 0.0)


def test_our_messages_for_a_subtask_whose_inputs_are_not_there_are_refused_unless_the_framework_passes_them_on() -> None:
    async def work(_: Workbench, endpoint: EndpointSession) -> None:
        with pytest.raises(RuntimeError, match="'total' is asked for before 'gather', which it reads, has an output"):
            endpoint.messages(TOTAL)
        assert "# Input: gather" not in endpoint.messages(TOTAL, documents_alone=True)[1].content
        assert "# Input: notes.txt" in endpoint.messages()[1].content

    served(work)


def test_a_paid_loss_that_is_never_repeated_makes_the_next_request_a_retry() -> None:
    async def work(_: Workbench, endpoint: EndpointSession) -> None:
        await ask(endpoint)
        await ask(endpoint, OTHER)

    result = served(work, [CutOff("broke", partial="half")])
    lost, again = events(result, Called)
    assert (again.cause, again.attempt, again.caused_by) == ("retry", 2, result.record.events.index(lost))
    assert not again.inferred, "the client saw its connection break"


def test_a_loss_whose_reply_came_after_all_makes_nothing_a_rerun() -> None:
    async def work(_: Workbench, endpoint: EndpointSession) -> None:
        await endpoint.answer((REVIEW,), HELLO)
        await ask(endpoint)
        await ask(endpoint)
        await endpoint.answer((REVIEW,), OTHER)

    result = served(work, [CutOff("broke", partial="half")])
    assert [call.cause for call in events(result, Called)] == ["first", "first", "retry", "step"]


def test_an_unpaid_failure_that_is_never_repeated_causes_nothing() -> None:
    async def work(_: Workbench, endpoint: EndpointSession) -> None:
        await ask(endpoint)
        await ask(endpoint, OTHER)

    result = served(work, [ServerFailed("500")])
    assert [(call.cause, call.attempt, call.caused_by) for call in events(result, Called)] == [
        ("first", 1, None),
        ("step", 1, None),
    ]


def test_a_judge_call_after_a_rejection_names_it_and_one_before_names_none() -> None:
    async def work(workbench: Workbench, endpoint: EndpointSession) -> None:
        await ask(endpoint)
        await ask(endpoint, OTHER)
        assert workbench.verify(endpoint.proposal("no JSON", GATHER))
        await ask(endpoint, OTHER)

    result = served(work, judges=lambda messages: messages == OTHER)
    rejected = next(number for number, event in enumerate(result.record.events) if isinstance(event, Judged))
    judging = [call.caused_by for call in events(result, Called) if call.cause == "judge"]
    assert judging == [None, rejected]


def test_agents_of_two_subtasks_at_work_over_one_session_do_not_cause_each_others_steps() -> None:
    async def work(_: Workbench, endpoint: EndpointSession) -> None:
        await ask(endpoint)
        await endpoint.answer((REVIEW,), HELLO)
        await ask(endpoint, OTHER)
        await endpoint.answer((REVIEW,), OTHER)

    result = served(work, ["{}", '{"confidence": 3}', "I plan."], review=["I plan."])
    assert [(call.subtasks[0], call.cause) for call in events(result, Called)] == [
        ("gather", "first"),
        ("review", "first"),
        ("gather", "step"),
        ("review", "step"),
    ]
    result = served(work, ['{"confidence": 3}'], review=["I plan."])
    assert [call.cause for call in events(result, Called)] == ["first", "first", "retry", "step"]


def test_a_framework_is_asked_in_code_blocks_and_its_replies_are_read_so_its_own_json_as_well() -> None:
    """Its replies in shadow, and what it hands in: a reply's text, or JSON that it made of it."""
    scenario = load_pack("workshop", ROOTS)
    draft = scenario.task.subtask("draft")
    reference = scenario.reference["draft"]
    good = write_answer(reference, answer_schema([draft])).text
    unended = good[:-3]

    async def architecture(_: Task, workbench: Workbench) -> None:
        async with workbench.endpoint(draft, server=unserved) as endpoint:
            asked = endpoint.messages(draft)
            assert "code:\n```python\n" in asked[-1].content
            assert (await endpoint.answer((draft,), asked)).text == unended
            assert (await endpoint.answer((draft,), (*asked, OTHER[0]))).text == good
            for handed_in in (good, json.dumps(reference)):
                [proposal] = [handed async for handed in endpoint.submit({"draft": handed_in})]
                assert proposal.parts["draft"].value == reference
                assert proposal.calls == (2,)
                assert workbench.verify(proposal) is None

    script = {"draft": [unended, good]}
    result = conducted(architecture, script, pack="workshop", answer_format="fenced")
    assert ("draft", "cut_off") in verdicts(result)
    assert [call.cause for call in events(result, Called)] == ["first", "retry"]
