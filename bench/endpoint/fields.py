"""Which fields of a request are taken. No field of a client is silently dropped.

    read       the messages, whether the reply is streamed, and the number of replies
    passed on  what the model is also given: tools, the form of the reply, where it ends (`bench.models.options`)
    replaced   what the experiment sets for every architecture: its setting replaces the client's
    refused    fields that would change a reply, unless the value asks for what happens anyway; and unknown fields

If client and experiment both limit a reply's length, the smaller limit counts.
Of a message, role, content and tool calls are read. Other fields of an assistant's message are passed on as they came. The
`name` of a message is taken and not passed on: AutoGen sends one with every message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bench.endpoint.problem import refuse_field
from bench.errors import nearest
from bench.models.options import LENGTHS, OPTIONS, options_text

READ = frozenset({"messages", "stream", "stream_options", "n"})
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
"""Sampling settings, and fields for the provider's bookkeeping."""
FUNCTIONS = "functions have become tools; give tools and tool_choice"


@dataclass(frozen=True)
class Restricted:
    """A field that is refused. `harmless` are values that ask for what happens anyway, as null and an empty list do."""

    remedy: str
    harmless: tuple[Any, ...] = ()


RESTRICTED: Mapping[str, Restricted] = {
    "functions": Restricted(FUNCTIONS),
    "function_call": Restricted(FUNCTIONS, ("none", "auto")),
    "logprobs": Restricted("no probabilities are given; leave the field out", (False,)),
    "top_logprobs": Restricted("no probabilities are given; leave the field out", (0,)),
    "logit_bias": Restricted("no token is favoured; leave the field out", ({},)),
    "modalities": Restricted("replies are text", (["text"],)),
    "audio": Restricted("replies are text; leave the field out"),
    "verbosity": Restricted("replies are as long as the model makes them; leave the field out", ("medium",)),
    "prediction": Restricted("what it says would not be passed on; leave the field out"),
    "web_search_options": Restricted("nothing is searched; leave the field out"),
}


def objection(field: str, value: Any, restricted: Mapping[str, Restricted] = RESTRICTED, known: frozenset[str] = READ) -> str:
    """Return why a field with this value is refused, and what to do; "" if it is taken."""
    if field in known or field in REPLACED or field in OPTIONS or value is None or value == []:
        return ""
    if field not in restricted:
        return f"unknown; {nearest(field, known | REPLACED | restricted.keys() | set(OPTIONS))}"
    return "" if value in restricted[field].harmless else restricted[field].remedy


def options_among(fields: Mapping[str, Any], parameters: Mapping[str, object]) -> str:
    """Return, as text, the options for the model with these parameters, without those that happen anyway. Raises Problem for a
    wrong value."""
    options = {name: fields[name] for name in OPTIONS if fields.get(name) not in (None, [])}
    for name, value in options.items():
        if why := _VALUES[name](value):
            refuse_field(name, why)
    if not options.get("tools"):
        if options.get("tool_choice") not in (None, "none", "auto"):
            refuse_field("tool_choice", "there are no tools to choose from; give tools as well")
        options = {name: value for name, value in options.items() if name not in ("tool_choice", "parallel_tool_calls")}
    return options_text({name: value for name, value in options.items() if not _is_as_asked(name, value, parameters)})


def _is_as_asked(field: str, value: Any, parameters: Mapping[str, object]) -> bool:
    """Return whether the experiment's own setting does what the client asks."""
    if field in LENGTHS:
        longest = longest_of(parameters)
        return longest is not None and value >= longest
    if field == "response_format":
        response_format = parameters.get("response_format")
        return value == {"type": "text"} or (value == {"type": "json_object"} and response_format == "json_object")
    return False


def longest_of(parameters: Mapping[str, object]) -> int | None:
    """Return the experiment's limit on a reply, in tokens; None if it has none."""
    extra = parameters.get("extra_body")
    for longest in (parameters.get("max_tokens"), extra.get("max_completion_tokens") if isinstance(extra, Mapping) else None):
        if isinstance(longest, int):
            return longest
    return None


def _tools(value: Any) -> str:
    if not isinstance(value, list):
        return "give a list of tools"
    for number, tool in enumerate(value):
        function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
            return f"{number}: only tools of type 'function', each with a function and its name, are passed on"
        if not isinstance(function.get("parameters", {}), dict | None):
            return f"{number}: its parameters are no JSON schema"
    return ""


def _tool_choice(value: Any) -> str:
    if value in ("none", "auto", "required"):
        return ""
    function = value.get("function") if isinstance(value, dict) and value.get("type") == "function" else None
    is_named = isinstance(function, dict) and isinstance(function.get("name"), str)
    return "" if is_named else "give 'none', 'auto', 'required', or one function by its name"


def _response_format(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind in ("text", "json_object"):
        return ""
    schema = value.get("json_schema") if kind == "json_schema" else None
    if isinstance(schema, dict) and isinstance(schema.get("schema", {}), dict):
        return ""
    return "give a type: 'text', 'json_object', or 'json_schema' with its json_schema"


def _stop(value: Any) -> str:
    texts = value if isinstance(value, list) else [value]
    return "" if all(isinstance(text, str) and text for text in texts) else "give a text, or a list of texts"


def _length(value: Any) -> str:
    return "" if isinstance(value, int) and not isinstance(value, bool) and value > 0 else "give a number of tokens above 0"


_VALUES: Mapping[str, Callable[[Any], str]] = {
    "tools": _tools,
    "tool_choice": _tool_choice,
    "parallel_tool_calls": lambda value: "" if isinstance(value, bool) else "give true or false",
    "response_format": _response_format,
    "stop": _stop,
    **dict.fromkeys(LENGTHS, _length),
}
"""Field -> a function that says what is wrong with a value, or ""."""
