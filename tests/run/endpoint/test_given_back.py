"""What a provider wants back with the next turn gets back to it, in all three APIs, whole and streamed, live and replayed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from scripted_model import ScriptedModel
from trials import TINY, events, matrix_of, run_all, with_model

from bench.common.digests import Texts, digest_of
from bench.record.events import Called
from bench.record.messages import Message
from bench.record.record import RESPONSE
from bench.record.tool_calls import ToolCall
from bench.record.verify import _digests_named
from bench.run.endpoint.server import serve_session
from bench.run.experiment.recording import record_of, response_of
from bench.run.models.base import Reply, Request, RequestContext, Response, Usage
from bench.run.models.counting import tokens_read
from bench.run.models.recording import Recording
from bench.run.trial.endpoint_session import EndpointSession
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.runtime.agent_session import AgentSession

SIGNED = ToolCall("a", "look", '{"at": 1}', '{"extra_content": {"google": {"thought_signature": "c2ln"}}}')
PLAIN = ToolCall("b", "look", "{}")
THOUGHT = '{"reasoning_content": "first I look", "reasoning_details": [{"id": "r"}]}'
GIVEN = Reply("", "tool_calls", Usage(12, 3), tool_calls=(SIGNED, PLAIN), extra=THOUGHT)
HELLO: dict[str, Any] = {"role": "user", "content": "hello"}
LOOK: dict[str, Any] = {"type": "function", "function": {"name": "look"}}

Ask = Callable[[openai.AsyncOpenAI, list[Any]], Awaitable[list[Any]]]
"""Asks, and gives what of the answer goes back."""


async def chat(client: openai.AsyncOpenAI, messages: list[Any]) -> list[Any]:
    tools: Any = [LOOK]
    got = await client.chat.completions.create(model="any", messages=messages, tools=tools)
    return [got.choices[0].message]


async def streamed_chat(client: openai.AsyncOpenAI, messages: list[Any]) -> list[Any]:
    tools: Any = [LOOK]
    async with client.chat.completions.stream(model="any", messages=messages, tools=tools) as stream:
        return [(await stream.get_final_completion()).choices[0].message]


async def responses(client: openai.AsyncOpenAI, items: list[Any]) -> list[Any]:
    tools: Any = [{"type": "function", **LOOK["function"], "strict": None}]
    got = await client.responses.create(model="any", input=items, tools=tools, store=False)
    return [*got.output]


async def streamed_responses(client: openai.AsyncOpenAI, items: list[Any]) -> list[Any]:
    tools: Any = [{"type": "function", **LOOK["function"], "strict": None}]
    async with client.responses.stream(model="any", input=items, tools=tools) as stream:
        return [*(await stream.get_final_response()).output]


def message_body(messages: list[Any]) -> dict[str, Any]:
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    return {"model": "any", "max_tokens": 99, "messages": messages, "tools": tools}


async def anthropics(client: openai.AsyncOpenAI, messages: list[Any]) -> list[Any]:
    got = await client.post("/messages", body=message_body(messages), cast_to=httpx2.Response)
    return [{"role": "assistant", "content": got.json()["content"]}]


async def streamed_anthropics(client: openai.AsyncOpenAI, messages: list[Any]) -> list[Any]:
    """As Anthropic's client puts the events together."""
    got = await client.post("/messages", body={**message_body(messages), "stream": True}, cast_to=httpx2.Response)
    events = [json.loads(line.removeprefix("data: ")) for line in got.text.splitlines() if line.startswith("data: ")]
    blocks: list[dict[str, Any]] = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    written = dict.fromkeys(range(len(blocks)), "")
    for event in events:
        if event["type"] == "content_block_delta":
            match event["delta"]:
                case {"type": "thinking_delta", "thinking": piece}:
                    blocks[event["index"]]["thinking"] += piece
                case {"type": "signature_delta", "signature": signature}:
                    blocks[event["index"]]["signature"] = signature
                case {"partial_json": piece}:
                    written[event["index"]] += piece
    for index, text in written.items():
        if text:
            blocks[index]["input"] = json.loads(text)
    return [{"role": "assistant", "content": blocks}]


def results(ask: Ask) -> list[Any]:
    results = [(call.id, "seen") for call in (SIGNED, PLAIN)]
    if ask in (responses, streamed_responses):
        return [{"type": "function_call_output", "call_id": id_, "output": text} for id_, text in results]
    if ask in (anthropics, streamed_anthropics):
        blocks = [{"type": "tool_result", "tool_use_id": id_, "content": text} for id_, text in results]
        return [{"role": "user", "content": blocks}]
    return [{"role": "tool", "tool_call_id": id_, "content": text} for id_, text in results]


def asked(converse: Callable[[EndpointSession | AgentSession], Awaitable[None]], *replies: Reply) -> tuple[ScriptedModel, Any]:
    """What the model was asked in a conversation over the endpoint, and the trial."""

    async def architecture(_: Task, workbench: Workbench) -> None:
        async with workbench.endpoint(TINY.task.subtask("gather")) as session:
            await converse(session)

    model = ScriptedModel(TINY.reference, {"gather": [*replies]})
    matrix = replace(matrix_of(architectures=["static"]).with_architecture(architecture), server=serve_session)
    [result] = run_all(with_model(matrix, model))
    return model, result


@pytest.mark.parametrize("ask", [chat, streamed_chat, responses, streamed_responses, anthropics, streamed_anthropics])
def test_what_came_with_a_turn_goes_back_with_it_to_the_letter(ask: Ask) -> None:
    async def converse(session: EndpointSession | AgentSession) -> None:
        async with openai.AsyncOpenAI(base_url=session.base_url(), api_key=session.api_key, max_retries=0) as client:
            back = await ask(client, [HELLO])
            await ask(client, [HELLO, *back, *results(ask)])

    model, result = asked(converse, GIVEN)
    _, second = model.requests
    assert second.messages[1] == Message("assistant", "", (SIGNED, PLAIN), extra=THOUGHT)
    bare = (*second.messages[:1], Message("assistant", "", (replace(SIGNED, extra=""), PLAIN)), *second.messages[2:])
    assert tokens_read(second) == tokens_read(replace(second, messages=bare)), "what is only carried is not counted"
    assert second.content != replace(second, messages=bare).content
    [_, call] = events(result, Called)
    assert result.texts[call.messages[1].extra or ""] == THOUGHT
    assert call.messages[1].extra == digest_of(THOUGHT)


def test_what_came_with_a_text_goes_back_with_it_through_anthropics_messages() -> None:
    async def converse(session: EndpointSession | AgentSession) -> None:
        async with openai.AsyncOpenAI(base_url=session.base_url(), api_key=session.api_key, max_retries=0) as client:
            [back] = await anthropics(client, [HELLO])
            assert [block["type"] for block in back["content"]] == ["thinking", "text"]
            assert back["content"][0]["thinking"] == "first I look"
            await anthropics(client, [HELLO, back, HELLO])

    model, _ = asked(converse, Reply("said", extra=THOUGHT))
    assert model.requests[1].messages[1] == Message("assistant", "said", extra=THOUGHT)


async def by_reference(client: openai.AsyncOpenAI) -> None:
    """As Vercel's SDK goes on: items are named by their ids."""
    items = await responses(client, [HELLO])
    references = [{"type": "item_reference", "id": item.id} for item in items]
    await responses(client, [HELLO, *references, *results(responses)])


async def by_thoughts_id(client: openai.AsyncOpenAI) -> None:
    """As LlamaIndex goes on if it stores: a thought is named by its id."""
    thought, *calls = await responses(client, [HELLO])
    await responses(client, [HELLO, {"type": "reasoning", "id": thought.id, "summary": []}, *calls, *results(responses)])


async def by_previous_response(client: openai.AsyncOpenAI) -> None:
    """As Strands goes on if it is stateful."""
    kept: Any = {"model": "any", "tools": [{"type": "function", **LOOK["function"], "strict": None}]}
    first = await client.responses.create(**kept, input="hello", instructions="be brief")
    await client.responses.create(**kept, input=results(responses), previous_response_id=first.id)


async def by_thread(client: openai.AsyncOpenAI) -> None:
    """As the tool runner of Anthropic's SDK goes on: the server holds the conversation, with its tools."""
    begun = {**message_body([HELLO]), "thread": {"type": "create"}}
    first = (await client.post("/messages", body=begun, cast_to=httpx2.Response)).json()
    thread = {"type": "continue", "previous_message_id": first["id"]}
    body = {"model": "any", "max_tokens": 99, "messages": results(anthropics), "thread": thread}
    await client.post("/messages", body=body, cast_to=httpx2.Response)


@pytest.mark.parametrize("go_on", [by_reference, by_thoughts_id, by_previous_response, by_thread])
def test_a_conversation_that_a_client_goes_on_with_by_an_id_is_the_whole_one(
    go_on: Callable[[openai.AsyncOpenAI], Awaitable[None]],
) -> None:
    async def converse(session: EndpointSession | AgentSession) -> None:
        async with openai.AsyncOpenAI(base_url=session.base_url(), api_key=session.api_key, max_retries=0) as client:
            await go_on(client)

    model, _ = asked(converse, GIVEN)
    _, second = model.requests
    assert second.messages == (
        Message("user", "hello"),
        Message("assistant", "", (SIGNED, PLAIN), extra=THOUGHT),
        Message("tool", "seen", tool_call_id="a"),
        Message("tool", "seen", tool_call_id="b"),
    )
    assert [tool["function"]["name"] for tool in json.loads(second.options)["tools"]] == ["look"]


def test_a_recording_gives_it_to_the_agent_again_and_finds_the_turn_that_came_with_it() -> None:
    hello = Message("user", "hello")
    first = Request((hello,), 7, RequestContext("tiny", ("gather",), 1, 1, arm="a/none"))
    second = replace(first, messages=(hello, Message("assistant", "", (SIGNED, PLAIN), extra=THOUGHT)))
    live = [Response("m", first, GIVEN, 1.0), Response("m", second, Reply("x"), 1.0)]
    texts = Texts()
    lines = [RESPONSE.dump_json(record_of(response, "settings", texts)) for response in live]
    kept = [response_of(RESPONSE.validate_json(line), texts, Path()) for line in lines]
    recording = Recording("run", "2026-01-01", kept)
    for response in live:
        stored = recording.find(response.request)
        assert stored and stored.outcome == response.outcome
    without = replace(second, messages=(hello, replace(second.messages[1], extra="")))
    assert recording.find(without) is None, "it is another request"


def test_a_text_of_it_that_is_gone_is_told_as_lost() -> None:
    request = Request((Message("assistant", "x", extra=THOUGHT),), 7, RequestContext("tiny", ("gather",), 1, 1))
    record = record_of(Response("m", request, GIVEN, 1.0), "settings", Texts())
    assert {digest_of(THOUGHT)} == {record.extra, record.messages[0].extra} <= set(_digests_named(record))


@pytest.mark.parametrize("path", ["chat/completions", "responses", "messages"])
def test_a_reply_with_nothing_beside_it_is_answered_as_before_there_was_such(path: str) -> None:
    async def converse(session: EndpointSession | AgentSession) -> None:
        body = {"input": [HELLO]} if path == "responses" else {"messages": [HELLO]}
        async with httpx2.AsyncClient(trust_env=False) as client:
            headers = {"Authorization": f"Bearer {session.api_key}"}
            answer = await client.post(f"{session.base_url()}/{path}", json=body, headers=headers)
            answers.append(json.loads(answer.content))

    answers = list[Any]()
    asked(converse, replace(GIVEN, tool_calls=(PLAIN,), extra=""))
    if path == "chat/completions":
        assert answers[0]["choices"][0]["message"] == {"role": "assistant", "content": None, "tool_calls": [PLAIN.plain]}
    elif path == "responses":
        assert [item["type"] for item in answers[0]["output"]] == ["function_call"]
    else:
        assert [block["type"] for block in answers[0]["content"]] == ["tool_use"]
