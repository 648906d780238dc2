"""An agent with a model at OPENAI_BASE_URL and a service at SHOP_URL. It does what the model says, and tells it each error."""

from __future__ import annotations

import json
import os
import sys

import small_http

TYPE_CHECKING = False
if TYPE_CHECKING:  # it starts hundreds of times
    from typing import Any


def post(address: str, body: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(small_http.ask(address, json.dumps(body).encode(), timeout=5)))


def ask(messages: list[dict[str, str]]) -> str:
    for _ in range(2):
        try:
            reply = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", {"model": "m", "messages": messages})
            return str(reply["choices"][0]["message"]["content"])
        except (OSError, ValueError, LookupError):
            continue
    sys.exit(4)


messages = [{"role": "user", "content": "pay 30 for the rent"}]
for _ in range(4):
    text = ask(messages)
    if text == "done":
        print("paid")
        sys.exit(0)
    try:
        content = json.dumps(post(os.environ["SHOP_URL"] + "/payments", {"amount": int(text.split()[1])}))
    except OSError:
        content = "it failed"
    messages += [{"role": "assistant", "content": text}, {"role": "user", "content": content}]
sys.exit(5)
