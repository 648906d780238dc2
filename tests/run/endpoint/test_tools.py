"""Tools over the endpoint, under OpenAI's own client: an agent's loop in a world, in both APIs, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from little_worlds import lived
from scripted_model import ScriptedModel
from trials import TINY, Fault, events, matrix_of, run_all, with_model
from world_tools import carried_out, tools

from bench.common.digests import Texts
from bench.record import ledger
from bench.record.events import Called, Faulted
from bench.record.messages import Message
from bench.record.record import RECORD, RESPONSE
from bench.record.tool_calls import ToolCall, calls_in
from bench.run.endpoint.server import serve_session
from bench.run.experiment.recording import record_of, response_of
from bench.run.experiment.trial import TrialResult
from bench.run.models.base import Reply, Request, RequestContext, Response
from bench.run.models.recorded import RecordedModel
from bench.run.models.recording import Recording
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.runtime.agent_session import AgentSession

TASK = "Do the work."


@dataclass(frozen=True)
class Turn:
    """What a client made of a reply: its text, its calls as (id, name, arguments), and what of it goes back as messages."""

    text: str
    calls: list[tuple[str, str, str]]
    back: list[Any]


Ask = Callable[[openai.AsyncOpenAI, list[Any], list[dict[str, Any]]], Awaitable[Turn]]


async def chat(client: openai.AsyncOpenAI, messages: list[Any], offered: list[dict[str, Any]]) -> Turn:
    got: Any = await client.chat.completions.create(model="any", messages=messages, tools=offered)  # type: ignore[arg-type]
    message = got.choices[0].message
    calls = [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()]
    assert got.choices[0].finish_reason == ("tool_calls" if calls else "stop")
    return Turn(message.content or "", calls, [message.model_dump(exclude_none=True)])


async def streamed_chat(client: openai.AsyncOpenAI, messages: list[Any], offered: list[dict[str, Any]]) -> Turn:
    async with client.chat.completions.stream(model="any", messages=messages, tools=offered) as stream:  # type: ignore[arg-type]
        message = (await stream.get_final_completion()).choices[0].message
    calls = [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()]
    back = {"role": "assistant", "content": message.content}
    made = [{"id": id_, "type": "function", "function": {"name": name, "arguments": given}} for id_, name, given in calls]
    return Turn(message.content or "", calls, [{**back, **({"tool_calls": made} if made else {})}])


def flat(offered: list[dict[str, Any]]) -> list[Any]:
    return [{"type": "function", "strict": None, **tool["function"]} for tool in offered]


def turn_of(response: Any) -> Turn:
    calls = [(call.call_id, call.name, call.arguments) for call in response.output if call.type == "function_call"]
    assert response.status == "completed"
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens > 0
    return Turn(response.output_text, calls, [item.model_dump() for item in response.output])


async def responses(client: openai.AsyncOpenAI, messages: list[Any], offered: list[dict[str, Any]]) -> Turn:
    return turn_of(await client.responses.create(model="any", input=messages, tools=flat(offered), store=False))


async def streamed_responses(client: openai.AsyncOpenAI, messages: list[Any], offered: list[dict[str, Any]]) -> Turn:
    seen = list[str]()
    async with client.responses.stream(model="any", input=messages, tools=flat(offered)) as stream:
        async for event in stream:
            seen.append(event.type)
        assert seen[:2] == ["response.created", "response.in_progress"]
        assert seen[-1] == "response.completed"
        return turn_of(await stream.get_final_response())


def result_of(ask: Ask, call_id: str, output: str) -> dict[str, Any]:
    if ask in (responses, streamed_responses):
        return {"type": "function_call_output", "call_id": call_id, "output": output}
    return {"role": "tool", "tool_call_id": call_id, "content": output}


def agent(ask: Ask, faults: Sequence[Fault] = (), most: int = 60, **how: Any) -> TrialResult:
    """An agent in forty lines, in the world of refunds; after so many replies it stops."""

    async def architecture(_: Task, workbench: Workbench) -> None:
        async with workbench.world.outside_agent() as session:
            await loop(ask, session, workbench, most)

    return lived(architecture, faults, server=serve_session, **how)


async def loop(ask: Ask, session: AgentSession, workbench: Workbench, most: int) -> None:
    messages: list[Any] = [{"role": "user", "content": TASK}]
    offered = tools(workbench.world.acting.world)
    async with openai.AsyncOpenAI(base_url=session.base_url(), api_key=session.api_key, max_retries=1) as client:
        for _ in range(most):
            turn = await patient(ask, client, messages, offered)
            messages += turn.back
            if not turn.calls:
                assert turn.text
                return
            for call_id, name, given in turn.calls:
                messages.append(result_of(ask, call_id, carried_out(workbench.world.acting.world, name, json.loads(given))))


async def patient(ask: Ask, client: openai.AsyncOpenAI, messages: list[Any], offered: list[dict[str, Any]]) -> Turn:
    """Asks once more where a stream breaks off, which OpenAI's client does not."""
    try:
        return await ask(client, messages, offered)
    except (httpx2.RemoteProtocolError, openai.APIError):
        return await ask(client, messages, offered)


def test_an_agent_does_a_worlds_work_by_tool_calls_and_each_way_asks_the_model_the_same() -> None:
    asked = list[list[tuple[object, ...]]]()
    for ask in (chat, streamed_chat, responses, streamed_responses):
        result = agent(ask)
        assert result.record.outcome == "solved"
        calls = events(result, Called)
        assert [call.cause for call in calls] == ["first", *["step"] * (len(calls) - 1)]
        assert all(call.options and call.tool_calls for call in calls[:-1])
        entries = ledger.book(result.record.events)
        assert ledger.imbalance(entries, result.record.tokens) is None
        assert {entry.account for entry in entries} == {"in_answer"}
        asked.append([(call.messages, call.seed, call.tokens_in, call.tool_calls) for call in calls])
    assert asked[1:] == asked[:1] * 3, "so that a recording of one answers the other"


@pytest.mark.parametrize(
    ("ask", "effect"),
    [
        (chat, "cut_off"),
        (streamed_chat, "cut_off"),
        (responses, "cut_off"),
        (streamed_responses, "cut_off"),
        (streamed_chat, "server_error"),
        (responses, "rate_limit"),
        (streamed_responses, "timeout"),
    ],
)
def test_a_reply_of_tool_calls_that_is_lost_is_asked_for_again(ask: Ask, effect: str) -> None:
    result = agent(ask, [{"point": "call", "effect": effect, "attempts": [2], "seconds": 0.01}], most=3)
    calls = events(result, Called)
    assert [bool(call.failure) for call in calls] == [False, True, False, False]
    assert (calls[1].tokens_out > 0) == (effect == "cut_off")
    assert calls[2].cause == ("retry" if effect in ("cut_off", "timeout") else "step")
    stages = [event.stage for event in events(result, Faulted)]
    assert stages[:3] == ["planned", "delivered", "detected"]


def test_of_a_tool_call_that_is_cut_off_the_first_half_arrives() -> None:
    begun = list[str]()

    async def architecture(_: Task, workbench: Workbench) -> None:
        async with workbench.world.outside_agent() as session, httpx2.AsyncClient(trust_env=False) as client:
            for path in ("chat/completions", "responses"):
                message = {"role": "user", "content": path}
                asked = {"messages": [message], "tools": tools(workbench.world.acting.world)}
                if path == "responses":
                    asked = {"input": [message], "tools": flat(tools(workbench.world.acting.world))}
                for stream in (False, True):
                    with pytest.raises(httpx2.RemoteProtocolError):
                        await read(client, session, path, {**asked, "stream": stream})

    async def read(client: httpx2.AsyncClient, session: AgentSession, path: str, body: object) -> None:
        headers = {"Authorization": f"Bearer {session.api_key}"}
        begun.append("")
        async with client.stream("POST", f"{session.base_url()}/{path}", json=body, headers=headers) as answer:
            async for text in answer.aiter_text():
                begun[-1] += text

    lived(architecture, [{"point": "call", "effect": "cut_off", "attempts": "every"}], server=serve_session)
    assert len(begun) == 4
    for text in begun:
        assert '"wait"' in text
        assert "days" in text
        assert "minutes" not in text.partition('"wait"')[2].rpartition("days")[2]
        assert not any(end in text for end in ("[DONE]", "response.completed", '"finish_reason":"tool_calls"}'))


def test_a_fault_at_output_never_strikes_a_reply_that_calls_tools() -> None:
    result = agent(chat, [{"point": "output", "effect": "truncated", "attempts": [1]}])
    assert result.record.outcome == "solved"
    [*_, last] = events(result, Faulted)
    assert (last.stage, "no reply read as an output" in last.detail) == ("not_applicable", True)


def test_what_a_reply_holds_is_in_the_record() -> None:
    result = agent(chat, most=1)
    first, *_ = events(result, Called)
    assert first.tool_calls and first.options
    [call] = calls_in(result.texts[first.tool_calls])
    assert call.name == "wait"
    assert json.loads(result.texts[first.options])["tools"]


def test_a_recording_of_an_agents_calls_gives_each_reply_back_byte_for_byte() -> None:
    responses_ = list[Response]()
    live = agent(chat, most=4, on_response=responses_.append)
    kept = [kept_and_found(response) for response in responses_]
    assert [response.outcome for response in kept] == [response.outcome for response in responses_]
    recorded = RecordedModel("m", Recording("run", "2026-01-01", kept), {})
    again = agent(chat, most=4, model=recorded)
    assert [as_called(call) for call in events(again, Called)] == [as_called(call) for call in events(live, Called)]
    assert [again.texts[call.tool_calls or ""] for call in events(again, Called)] == [
        live.texts[call.tool_calls or ""] for call in events(live, Called)
    ]


def kept_and_found(response: Response) -> Response:
    """As a run's files hold it."""
    texts = Texts()
    line = RESPONSE.dump_json(record_of(response, "settings", texts))
    return response_of(RESPONSE.validate_json(line), texts, Path())


def as_called(call: Called) -> tuple[object, ...]:
    return call.messages, call.seed, call.options, call.reply, call.tool_calls, call.finish, call.usage_in, call.cause


def test_n_replies_are_n_calls_each_booked_and_all_but_the_first_are_samples() -> None:
    async def architecture(_: Task, workbench: Workbench) -> None:
        async with (
            workbench.world.outside_agent() as session,
            openai.AsyncOpenAI(base_url=session.base_url(), api_key=session.api_key) as client,
        ):
            hello: Any = [{"role": "user", "content": "hello"}]
            whole = await client.chat.completions.create(model="any", messages=hello, n=3)
            assert [choice.index for choice in whole.choices] == [0, 1, 2]
            stream = await client.chat.completions.create(model="any", messages=hello, n=2, stream=True)
            ends = [choice.index async for chunk in stream for choice in chunk.choices if choice.finish_reason]
            assert ends == [0, 1]
            assert session.received == 5

    result = lived(architecture, server=serve_session)
    calls = events(result, Called)
    assert [call.cause for call in calls] == ["first", *["sample"] * 4]
    assert [call.sample for call in calls] == [1, 2, 3, 4, 5]
    assert len({call.seed for call in calls}) == 5


def test_what_ends_a_reply_is_passed_on_and_the_smaller_bound_counts() -> None:
    async def architecture(_: Task, workbench: Workbench) -> None:
        async with (
            workbench.world.outside_agent() as session,
            openai.AsyncOpenAI(base_url=session.base_url(), api_key=session.api_key) as client,
        ):
            for more in ({"stop": ["simulated"]}, {"max_tokens": 4}, {"max_completion_tokens": 4}):
                got: Any = await client.chat.completions.create(
                    model="any",
                    messages=[{"role": "user", "content": "hello"}],
                    **more,
                )
                endings.append((got.choices[0].finish_reason, got.choices[0].message.content))
            short = await client.responses.create(model="any", input="hello", max_output_tokens=16)
            assert short.status in ("completed", "incomplete")

    endings = list[tuple[str, str]]()
    result = lived(architecture, server=serve_session)
    assert endings[0][0] == "stop" and "simulated" not in endings[0][1]
    assert [finish for finish, _ in endings[1:]] == ["length", "length"]
    options = [json.loads(result.texts[call.options or ""]) for call in events(result, Called)]
    assert options == [{"stop": ["simulated"]}, {"max_tokens": 4}, {"max_completion_tokens": 4}, {"max_completion_tokens": 16}]


def test_in_a_graded_task_a_reply_that_calls_tools_is_a_step_and_its_output_is_struck_later() -> None:
    called = Reply("", "tool_calls", tool_calls=(ToolCall("a", "look", "{}"),))
    hello: list[Any] = [{"role": "user", "content": "hello"}]
    look: Any = [{"type": "function", "function": {"name": "look"}}]

    async def architecture(_: Task, workbench: Workbench) -> None:
        async with (
            workbench.endpoint(TINY.task.subtask("gather")) as session,
            openai.AsyncOpenAI(base_url=session.base_url(), api_key=session.api_key) as client,
        ):
            first = await client.chat.completions.create(model="any", messages=hello, tools=look)
            [call] = first.choices[0].message.tool_calls or []
            back: Any = [{"role": "assistant", "content": None, "tool_calls": [call.model_dump()]}]
            result: Any = {"role": "tool", "tool_call_id": call.id, "content": "seen"}
            last: Any = await client.chat.completions.create(model="any", messages=[*hello, *back, result], tools=look)
            contents.append(last.choices[0].message.content)

    contents = list[str]()
    faults = [{"point": "output", "effect": "empty", "subtask": "gather", "attempts": [1]}]
    matrix = matrix_of(plans={"plan": faults}, architectures=["static"])
    matrix = replace(matrix.with_architecture(architecture), server=serve_session)
    [result] = run_all(with_model(matrix, ScriptedModel(TINY.reference, {"gather": [called, None]})))
    assert contents == [""]
    assert [(call.cause, call.attempt) for call in events(result, Called)] == [("first", 1), ("step", 1)]
    assert [event.call for event in events(result, Faulted) if event.stage == "delivered"] == [2]


def test_a_record_without_tools_is_what_it_was_before_there_were_any() -> None:
    request = Request((Message("user", "hello"),), 7, RequestContext("tiny", ("gather",), 1, 1))
    kept = record_of(Response("m", request, Reply("hi"), 1.0), "settings", Texts())
    written = json.loads(RESPONSE.dump_json(kept))
    assert written.keys() & {"tool_calls", "options"} == set()
    assert [message.keys() for message in written["messages"]] == [{"role", "content"}]
    [result] = run_all(matrix_of(architectures=["static"]))
    calls = [event for event in json.loads(RECORD.dump_json(result.record))["events"] if event["kind"] == "call"]
    assert calls
    assert not any(call.keys() & {"tool_calls", "options"} for call in calls)
