"""What a model behind an endpoint is asked beside the messages, and the tool calls that it answers with."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from scripted_server import ScriptedServer, Step, raw

from bench.record.messages import Message
from bench.record.tool_calls import ToolCall
from bench.run.models.base import Reply, Request, RequestContext
from bench.run.openai.model import OpenAIModel
from bench.run.openai.settings import OpenAISettings

KEY = "sk-very-secret-0123456789"
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
CALL = ToolCall("call_1", "look", '{"at": "é"}')
MESSAGES = (Message("user", "Look."), Message("assistant", "", (CALL,)), Message("tool", "a cat", tool_call_id="call_1"))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def asked(step: Step, options: dict[str, Any], **settings: Any) -> tuple[Any, Reply]:
    """The body that was sent, and the reply."""

    async def ask(url: str) -> Reply:
        model = OpenAIModel("small", OpenAISettings(base_url=url, **settings))
        request = Request(MESSAGES, 7, RequestContext("pack", ("agent",), 1, 1), options=json.dumps(options) if options else "")
        try:
            return await model.reply(request, asyncio.sleep)
        finally:
            await model.close()

    with ScriptedServer([step]) as server:
        reply = asyncio.run(ask(server.base_url))
        return server.requests[0].body, reply


def calling(*calls: dict[str, Any], content: str | None = None) -> Step:
    message = {"role": "assistant", "content": content, "tool_calls": list(calls)}
    return raw(json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}))


def call(arguments: str, **more: Any) -> dict[str, Any]:
    return {"id": "call_2", "type": "function", "function": {"name": "look", "arguments": arguments}, **more}


def test_messages_with_tool_calls_and_the_options_are_sent_as_the_client_wrote_them() -> None:
    options = {"tools": TOOLS, "tool_choice": "auto", "stop": ["\n"], "response_format": {"type": "json_object"}}
    body, _ = asked(calling(call("{}")), options)
    assert {name: body[name] for name in options} == options
    assert body["messages"] == [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [CALL.plain]},
        {"role": "tool", "content": "a cat", "tool_call_id": "call_1"},
    ]


def test_tool_calls_come_back_as_they_were_written_and_without_the_key() -> None:
    odd = '{ "at" :"\\u00e9", '
    _, reply = asked(calling(call(odd, index=0), {**call(f'{{"key": "{KEY}"}}'), "id": None}), {"tools": TOOLS})
    assert (reply.text, reply.finish) == ("", "tool_calls")
    assert reply.tool_calls == (ToolCall("call_2", "look", odd), ToolCall("call_2", "look", '{"key": "***"}'))


def test_a_reply_may_say_something_beside_its_tool_calls() -> None:
    _, reply = asked(calling(call("{}"), content="Let me look."), {"tools": TOOLS})
    assert (reply.text, len(reply.tool_calls)) == ("Let me look.", 1)


@pytest.mark.parametrize(
    ("options", "settings", "sent"),
    [
        ({"max_completion_tokens": 50}, {"max_tokens": 800}, {"max_tokens": 50}),
        ({"max_tokens": 50}, {"extra_body": {"max_completion_tokens": 800}}, {"max_completion_tokens": 50}),
        ({"max_completion_tokens": 50}, {}, {"max_completion_tokens": 50}),
        ({"max_tokens": 50, "max_completion_tokens": 40}, {}, {"max_tokens": 40}),
        ({}, {"max_tokens": 800}, {"max_tokens": 800}),
    ],
)
def test_one_bound_on_the_length_is_sent_in_the_field_that_the_settings_use(
    options: dict[str, Any], settings: dict[str, Any], sent: dict[str, int]
) -> None:
    body, _ = asked(calling(call("{}")), options, **settings)
    assert {name: body[name] for name in ("max_tokens", "max_completion_tokens") if name in body} == sent
