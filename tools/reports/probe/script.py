"""A model that follows a script: an OpenAI-compatible server, with `chat/completions` and `responses`.

It asks for the script's next call whose answer the conversation does not hold. It asks again for a call that failed, at most
three times in all, and then gives up. The conversation is all that it knows: `{path}` in an argument is the first absolute path
in what the user asked. Ids of its calls are drawn, as a real model's are.

    python script.py PORT SCRIPT.toml
"""

from __future__ import annotations

import json
import re
import secrets
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

TRIES = 3
FAILED = re.compile(
    r"\berrors?\b(?![\\\"]*: *(?:false|null))|\bfailed|closed|unavailable|not available|timed? ?out|no answer|exception"
    r"|status 5\d\d",
    re.IGNORECASE,
)
"""What an answer says that the script takes for a failure. Frameworks word errors in their own ways."""


@dataclass(frozen=True)
class Call:
    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Exchange:
    """A call that the conversation holds, with its answer; None if none came."""

    call: Call
    answer: str | None


def next_call(script: Sequence[Call], exchanges: Sequence[Exchange]) -> Call | str:
    """Return the call that the script asks for after these, or the text with which it ends."""
    for call in script:
        answers = [exchange.answer for exchange in exchanges if exchange.call == call]
        if any(answer is not None and not FAILED.search(answer) for answer in answers):
            continue
        return call if len(answers) < TRIES else f"I give up: {call.tool} does not work."
    return "Done."


def placed(script: Sequence[Call], asked: str) -> list[Call]:
    """Return the script with the path that the user named in place of `{path}`."""
    found = re.search(r"/[^\s,]*[^\s,.]", asked)
    path = json.dumps(found.group() if found else "")[1:-1]
    return [Call(call.tool, json.loads(json.dumps(call.arguments).replace("{path}", path))) for call in script]


def of_chat(body: dict[str, Any]) -> list[Exchange]:
    """Return the exchanges of a chat completion's messages."""
    answers = {each["tool_call_id"]: _text(each["content"]) for each in body["messages"] if each["role"] == "tool"}
    asked = [call for each in body["messages"] for call in each.get("tool_calls") or []]
    return [
        Exchange(Call(call["function"]["name"], json.loads(call["function"]["arguments"])), answers.get(call["id"]))
        for call in asked
    ]


def of_response(items: Sequence[dict[str, Any]]) -> list[Exchange]:
    """Return the exchanges of a response's input."""
    answers = {each["call_id"]: _text(each["output"]) for each in items if each.get("type") == "function_call_output"}
    return [
        Exchange(Call(each["name"], json.loads(each["arguments"])), answers.get(each["call_id"]))
        for each in items
        if each.get("type") == "function_call"
    ]


def chat_reply(asked: Call | str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": asked if isinstance(asked, str) else None}
    if isinstance(asked, Call):
        function = {"name": asked.tool, "arguments": json.dumps(asked.arguments)}
        message["tool_calls"] = [{"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "stop" if isinstance(asked, str) else "tool_calls"}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    named = {"id": f"chatcmpl-{secrets.token_hex(12)}", "object": "chat.completion", "created": int(time.time())}
    return {**named, "model": "script", "choices": [choice], "usage": usage}


def streamed_chat(reply: Mapping[str, Any]) -> str:
    """Return the events of a chat completion that is streamed: a single chunk, then the end."""
    [choice] = reply["choices"]
    calls = [{**call, "index": index} for index, call in enumerate(choice["message"].get("tool_calls", []))]
    delta = {**choice["message"], **({"tool_calls": calls} if calls else {})}
    chunk = {**reply, "object": "chat.completion.chunk"}
    chunk["choices"] = [{"index": 0, "delta": delta, "finish_reason": choice["finish_reason"]}]
    return f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"


def response_reply(asked: Call | str) -> dict[str, Any]:
    if isinstance(asked, Call):
        call = {"call_id": f"call_{secrets.token_hex(12)}", "name": asked.tool, "arguments": json.dumps(asked.arguments)}
        item: dict[str, Any] = {"type": "function_call", "id": f"fc_{secrets.token_hex(12)}", "status": "completed", **call}
    else:
        content = [{"type": "output_text", "text": asked, "annotations": []}]
        item = {"type": "message", "id": f"msg_{secrets.token_hex(12)}", "status": "completed", "role": "assistant"}
        item["content"] = content
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 120,
    }
    named = {"id": f"resp_{secrets.token_hex(12)}", "object": "response", "created_at": int(time.time()), "status": "completed"}
    rest = {"model": "script", "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage}
    return {**named, **rest, "output": [item]}


def application(script: Sequence[Call]) -> web.Application:
    async def chat(request: web.Request) -> web.Response:
        body = await request.json()
        asked = next(_text(each["content"]) for each in body["messages"] if each["role"] == "user")
        reply = chat_reply(next_call(placed(script, asked), of_chat(body)))
        if body.get("stream"):
            return web.Response(text=streamed_chat(reply), content_type="text/event-stream")
        return web.json_response(reply)

    async def response(request: web.Request) -> web.Response:
        body = await request.json()
        items = [{"role": "user", "content": body["input"]}] if isinstance(body["input"], str) else body["input"]
        asked = next(_text(each["content"]) for each in items if each.get("role") == "user")
        return web.json_response(response_reply(next_call(placed(script, asked), of_response(items))))

    app = web.Application(client_max_size=2**24)
    app.add_routes([web.post("/v1/chat/completions", chat), web.post("/v1/responses", response)])
    return app


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content if isinstance(content, str) else json.dumps(content)


if __name__ == "__main__":
    port, path = sys.argv[1:]
    calls = tomllib.loads(Path(path).read_text(encoding="utf-8"))["calls"]
    serve = application([Call(each["tool"], each["arguments"]) for each in calls])
    web.run_app(serve, host="127.0.0.1", port=int(port), print=None)
