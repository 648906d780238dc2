"""What a simulated model says, as a reply to the request that it was asked by."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench.models.base import Reply, Request
from bench.models.options import LENGTHS
from bench.models.tool_calls import ToolCall
from bench.scenario import Call
from bench.seeding import seed_of
from bench.tokens import first_tokens


def calling(calls: Sequence[Call], request: Request) -> Reply:
    """Each call has an id of its own, another one for each request."""
    where = ("tool call", request.seed, request.occurrence, len(request.messages))
    written = [
        ToolCall(f"call_{seed_of(*where, number):016x}", call.tool, json.dumps(call.arguments, ensure_ascii=False))
        for number, call in enumerate(calls)
    ]
    return Reply("", "tool_calls", tool_calls=tuple(written))


def within(reply: Reply, options: Mapping[str, Any]) -> Reply:
    """The reply up to what the request says is its end, and no longer than it says."""
    stops = options.get("stop", ())
    text = reply.text
    for stop in [stops] if isinstance(stops, str) else stops:
        text = text.partition(stop)[0]
    longest = min((options[name] for name in LENGTHS if name in options), default=None)
    short = text if longest is None else first_tokens(text, longest)
    return replace(reply, text=short, finish=reply.finish if short == text else "length")
