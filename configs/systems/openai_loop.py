"""A loop around OpenAI's own SDK: https://platform.openai.com/docs/guides/function-calling

--durable   each message is written down before anything is made of it, and a new life goes on from there
"""

import json

import openai
from shared import DURABLE, FOLDER, MODEL, TASK, call, http_client, tools

KEPT = FOLDER / "conversation.jsonl"


def keep(message: dict) -> None:
    messages.append(message)
    if DURABLE:
        with KEPT.open("a") as file:
            file.write(json.dumps(message) + "\n")


def unanswered() -> list[dict]:
    answered = {message["tool_call_id"] for message in messages if message["role"] == "tool"}
    asked = messages[max(at for at, message in enumerate(messages) if message["role"] != "tool")].get("tool_calls", [])
    return [one for one in asked if one["id"] not in answered]


model = openai.OpenAI(http_client=http_client())
offered = [{"type": "function", "function": tool} for tool in tools()]
messages: list[dict] = [json.loads(line) for line in KEPT.read_text().splitlines()] if KEPT.exists() else []
if not messages:
    keep({"role": "user", "content": TASK})
while True:
    for one in unanswered():
        said = call(one["function"]["name"], json.loads(one["function"]["arguments"]), one["id"])
        keep({"role": "tool", "tool_call_id": one["id"], "content": said})
    if messages[-1]["role"] == "assistant":
        break
    reply = model.chat.completions.create(model=MODEL, messages=messages, tools=offered)
    keep(reply.choices[0].message.model_dump(exclude_none=True))
print(messages[-1]["content"])
