"""Which fields of a chat completion are taken. Nothing that a client sends is dropped without a word.

    read       the messages, and whether the reply is streamed
    replaced   what the experiment decides for every architecture: its own setting takes the place of the client's
    refused    what would change what a reply looks like, unless its value says what happens anyway; and what nobody knows

Of a message, role and content are read. Its `name` is taken and not passed on: AutoGen sends one with every message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.errors import nearest

READ = frozenset({"messages", "stream", "stream_options"})
REPLACED = frozenset(
    {
        "model",
        "seed",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "frequency_penalty",
        "presence_penalty",
        "repetition_penalty",
        "reasoning_effort",
        "service_tier",
        "store",
        "metadata",
        "user",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
    }
)
"""Sampling settings, and what only the provider's own bookkeeping is for."""
TOOLS = "tools are not served; describe them in the messages, and read the calls off the reply's text"


@dataclass(frozen=True)
class Restricted:
    """A field that is refused. `harmless`: its values that say what happens anyway, as null and an empty list do."""

    remedy: str
    harmless: tuple[Any, ...] = ()


RESTRICTED: Mapping[str, Restricted] = {
    "tools": Restricted(TOOLS),
    "tool_choice": Restricted(TOOLS, ("none", "auto")),
    "parallel_tool_calls": Restricted(TOOLS, (True, False)),
    "functions": Restricted(TOOLS),
    "function_call": Restricted(TOOLS, ("none", "auto")),
    "response_format": Restricted(
        "the experiment's model is not held to this form; leave the field out and ask for the form in the messages",
        ({"type": "text"},),
    ),
    "max_tokens": Restricted("the experiment's model is not held to this length; leave the field out"),
    "max_completion_tokens": Restricted("the experiment's model is not held to this length; leave the field out"),
    "stop": Restricted("replies are not cut; leave the field out, and cut the reply's text yourself"),
    "n": Restricted("a request has one reply; leave the field out, and ask several times", (1,)),
    "logprobs": Restricted("no probabilities are given; leave the field out", (False,)),
    "top_logprobs": Restricted("no probabilities are given; leave the field out", (0,)),
    "logit_bias": Restricted("no token is favoured; leave the field out", ({},)),
    "modalities": Restricted("replies are text", (["text"],)),
    "audio": Restricted("replies are text; leave the field out"),
    "verbosity": Restricted("replies are as long as the model makes them; leave the field out", ("medium",)),
    "prediction": Restricted("what it says would not be passed on; leave the field out"),
    "web_search_options": Restricted("nothing is searched; leave the field out"),
}
LENGTHS = ("max_tokens", "max_completion_tokens")


def objection(field: str, value: Any, parameters: Mapping[str, object]) -> str | None:
    """Why a field with this value is not taken, and what to do; None where it is. `parameters` are the model's own."""
    if field in READ or field in REPLACED or value is None or value == []:
        return None
    if field not in RESTRICTED:
        return f"unknown; {nearest(field, READ | REPLACED | RESTRICTED.keys())}"
    restricted = RESTRICTED[field]
    if value in restricted.harmless or _is_as_asked(field, value, parameters):
        return None
    return restricted.remedy


def _is_as_asked(field: str, value: Any, parameters: Mapping[str, object]) -> bool:
    """Whether the experiment's own setting does what the client wants."""
    if field in LENGTHS:
        longest = parameters.get("max_tokens")
        return isinstance(longest, int) and isinstance(value, int | float) and value >= longest
    if field == "response_format":
        return value == {"type": "json_object"} and parameters.get("response_format") == "json_object"
    return False
