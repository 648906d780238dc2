"""What these agents share: the tools, called over HTTP, and a log of their own, of what they sent and what they got.

An agent is given its task and all addresses by its environment. The log is for a check of the account, and is never read here.
"""

import json
import os
import sys
from pathlib import Path

import httpx2
import openai

TASK = os.environ["AGENT_TASK"]
MODEL = os.environ["OPENAI_MODEL"]
FOLDER = Path(os.environ["AGENT_FOLDER"])
DURABLE = "--durable" in sys.argv
"""Keep what the framework's documentation says how to keep."""
KEYS = "--keys" in sys.argv
"""Send each call's own id as its idempotency key, so that the same call made again happens once."""

_http = httpx2.Client(
    base_url=os.environ["TOOLS_URL"],
    headers={"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
    timeout=60,
    transport=httpx2.HTTPTransport(),
)


def tools() -> list[dict]:
    """Each tool's `name`, `description` and `parameters` (JSON schema)."""
    return [tool["function"] for tool in _http.get("/tools").raise_for_status().json()]


def call(tool: str, arguments: dict, call_id: str) -> str:
    """What the tool says, errors too, for a model to read. Raises where the connection ends without an answer; with a key the
    same call is made again first."""
    tries = 3 if KEYS else 1
    for left in reversed(range(tries)):
        log(what="tool", when="sent", name=tool)
        try:
            answer = _http.post(f"/tools/{tool}", json=arguments, headers={"Idempotency-Key": call_id} if KEYS else {})
        except httpx2.TransportError:
            if not left:
                raise
        else:
            log(what="tool", when="got", name=tool, status=answer.status_code)
            return answer.text
    raise AssertionError("a try either answers or raises")


def log(**entry: object) -> None:
    with (FOLDER / "log.jsonl").open("a") as file:
        file.write(json.dumps(entry) + "\n")


def http_client() -> openai.DefaultHttpxClient:
    """For OpenAI's own client, which takes its address and key from the environment."""
    return openai.DefaultHttpxClient(event_hooks={"request": [_sent], "response": [_got]})


def async_http_client() -> openai.DefaultAsyncHttpxClient:
    return openai.DefaultAsyncHttpxClient(event_hooks={"request": [_async_sent], "response": [_async_got]})


def _sent(_: httpx2.Request) -> None:
    log(what="model", when="sent")


def _got(response: httpx2.Response) -> None:
    response.read()
    usage = response.json().get("usage") or {}
    counts = {
        "prompt_tokens": usage.get("prompt_tokens", usage.get("input_tokens")),
        "completion_tokens": usage.get("completion_tokens", usage.get("output_tokens")),
    }
    log(what="model", when="got", status=response.status_code, **counts)


async def _async_sent(request: httpx2.Request) -> None:
    _sent(request)


async def _async_got(response: httpx2.Response) -> None:
    await response.aread()
    _got(response)
