"""How an agent makes its calls: with a key that a task has, a journal of what was done, and errors that are told."""

import json
import os
import uuid
from pathlib import Path

from mcp.types import CallToolResult, TextContent

JOURNAL = Path(os.environ["JOURNAL"])
RANDOM = uuid.uuid4


def key():
    return "invoice-17"


async def called(name, arguments, do):
    done = read()
    asked = arguments["query"]
    if asked in done:
        return text(done[asked])
    answer = await do(name, {"query": asked.replace("KEY", key())} if "KEY" in asked else arguments)
    if answer.isError:
        return answer
    done[asked] = answer.content[0].text
    write(done)
    return answer


def read():
    return json.loads(JOURNAL.read_text()) if JOURNAL.exists() else {}


def write(done):
    JOURNAL.write_text(json.dumps(done))


def text(words):
    return CallToolResult(content=[TextContent(type="text", text=words)])
