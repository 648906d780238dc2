"""Rules for the fields of a request: each field is read, passed on, replaced, recorded or refused. No field is silently
dropped.

    read       the messages, whether the reply is streamed, and the number of replies
    passed on  what the model is also given: tools, the form of the reply, where it ends (`bench.run.models.options`)
    replaced   what the experiment sets for every architecture: its setting replaces the client's
    hints      what changes no reply here: the provider's bookkeeping, how much the model thinks and how wordy it is, where a
               gateway sends the request
    refused    fields that would change a reply, unless the value asks for what happens anyway; and unknown fields

Replaced settings and hints of any dialect are taken in all of them, since SDKs send them by default. `set_aside` returns them
for the record. If client and experiment both limit a reply's length, the smaller limit counts.
Of a message, role, content and tool calls are read. Other fields of an assistant's message are passed on as they came. The
`name` of a message is taken and not passed on: AutoGen sends one with every message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.common.errors import nearest
from bench.run.models.options import LENGTHS, OPTIONS, options_text
from bench.wire.problem import refuse_field

READ = frozenset({"messages", "stream", "stream_options", "n"})
REPLACED = frozenset(
    {
        *("model", "seed", "random_seed", "temperature", "top_p", "top_k", "top_a", "min_p", "typical_p"),
        *("frequency_penalty", "presence_penalty", "repetition_penalty", "repeat_penalty", "length_penalty"),
    }
)
"""Sampling settings."""
HINTS = frozenset(
    {
        *("service_tier", "store", "metadata", "user", "safety_identifier", "moderation", "inference_geo", "speed"),
        *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "cache_control"),
        *("verbosity", "reasoning", "reasoning_effort", "reasoning_format", "reasoning_split", "include_reasoning"),
        *("thinking", "thinking_config", "thinking_budget", "enable_thinking", "chat_template_kwargs"),
        *("provider", "models", "route", "usage", "safety_settings", "safe_prompt"),
        *("background_options", "truncation", "max_tool_calls", "access_programs", "user_profile_id", "workspace_id"),
        *("diagnostics", "billing_policy", "fallbacks", "fallback_credit_token", "effort"),
        *("betas", "anthropic_beta", "anthropic_version"),
    }
)
"""Fields that change no reply here."""
VENDORS = "extra_body"
"""The field under which Gemini's OpenAI mode reads its own settings, as `extra_body.google`. They are ruled like others."""
NO_VALUES: tuple[Any, ...] = (None, [])
"""Values that say nothing."""
FORMS = ("guided_json", "guided_choice", "guided_regex", "guided_grammar", "structured_outputs")
"""Names by which vLLM takes a reply's form."""
FUNCTIONS = "functions have become tools; give tools and tool_choice"


@dataclass(frozen=True)
class Restricted:
    """A field that is refused. `harmless` are values that ask for what happens anyway, such as null and an empty list."""

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
    "prediction": Restricted("what it says would not be passed on; leave the field out"),
    "web_search_options": Restricted("nothing is searched; leave the field out"),
    "plugins": Restricted("nothing is searched or read for a client; leave the field out"),
    "cached_content": Restricted("no content is stored here; send all messages with each request"),
    **dict.fromkeys(FORMS, Restricted("a form is passed on as response_format; give it there")),
}


def refuse_others(
    fields: Mapping[str, Any], restricted: Mapping[str, Restricted] = RESTRICTED, known: frozenset[str] = READ
) -> None:
    """Raise Problem for the first field that is refused. Its message says why, and what to do."""
    for field, value in _fields_with_place(fields):
        if why := _objection(field.rpartition(".")[2], value, restricted, known):
            refuse_field(field, why)


def set_aside(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that the experiment replaces, and the hints, with their values. The model's name is left out: the
    endpoint gave it."""
    known = (REPLACED | HINTS) - {"model"}
    return {
        field: value
        for field, value in _fields_with_place(fields)
        if field.rpartition(".")[2] in known and value not in NO_VALUES
    }


def _fields_with_place(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each field with its value. A vendor's settings are yielded one by one, with their place."""
    for field, value in fields.items():
        if field == VENDORS and isinstance(value, dict) and all(isinstance(inner, dict) for inner in value.values()):
            for vendor, settings in value.items():
                yield from ((f"{VENDORS}.{vendor}.{name}", inner) for name, inner in settings.items())
        else:
            yield field, value


def _objection(field: str, value: Any, restricted: Mapping[str, Restricted], known: frozenset[str]) -> str:
    """Return why a field with this value is refused, and what to do; "" if it is accepted."""
    accepted = known | REPLACED | HINTS
    if field in accepted or field in OPTIONS or value in NO_VALUES:
        return ""
    if field not in restricted:
        return f"unknown; {nearest(field, accepted | restricted.keys() | set(OPTIONS))}"
    return "" if value in restricted[field].harmless else restricted[field].remedy


def options_among(fields: Mapping[str, Any], parameters: Mapping[str, object]) -> str:
    """Return, as text, the options for a model with these parameters, without options that its parameters imply. Raises Problem
    for a wrong value."""
    options = {name: fields[name] for name in OPTIONS if fields.get(name) not in (None, [])}
    for name, value in options.items():
        if why := _VALUES[name](value):
            refuse_field(name, why)
    if not options.get("tools"):
        if options.get("tool_choice") not in (None, "none", "auto"):
            refuse_field("tool_choice", "there are no tools to choose from; give tools as well")
        options = {name: value for name, value in options.items() if name not in ("tool_choice", "parallel_tool_calls")}
    return options_text({name: value for name, value in options.items() if not _is_implied(name, value, parameters)})


def _is_implied(field: str, value: Any, parameters: Mapping[str, object]) -> bool:
    """Return whether the experiment's own setting does what the client asks for."""
    if field in LENGTHS:
        longest = longest_of(parameters)
        return longest is not None and value >= longest
    if field == "response_format":
        response_format = parameters.get("response_format")
        return value == {"type": "text"} or (value == {"type": "json_object"} and response_format == "json_object")
    return False


def longest_of(parameters: Mapping[str, object]) -> int | None:
    """Return the experiment's limit on a reply's length, in tokens; None if it has none."""
    extra = parameters.get("extra_body")
    for longest in (parameters.get("max_tokens"), extra.get("max_completion_tokens") if isinstance(extra, Mapping) else None):
        if isinstance(longest, int):
            return longest
    return None


def _tools(value: Any) -> str:
    """Return what is wrong with a list of tools; "" if it is right."""
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
    """Return what is wrong with a choice of a tool; "" if it is right."""
    if value in ("none", "auto", "required"):
        return ""
    function = value.get("function") if isinstance(value, dict) and value.get("type") == "function" else None
    is_named = isinstance(function, dict) and isinstance(function.get("name"), str)
    return "" if is_named else "give 'none', 'auto', 'required', or one function by its name"


def _response_format(value: Any) -> str:
    """Return what is wrong with a response format; "" if it is right."""
    kind = value.get("type") if isinstance(value, dict) else None
    if kind in ("text", "json_object"):
        return ""
    schema = value.get("json_schema") if kind == "json_schema" else None
    if isinstance(schema, dict) and isinstance(schema.get("schema", {}), dict):
        return ""
    return "give a type: 'text', 'json_object', or 'json_schema' with its json_schema"


def _stop(value: Any) -> str:
    """Return what is wrong with the stop texts; "" if they are right."""
    texts = value if isinstance(value, list) else [value]
    return "" if all(isinstance(text, str) and text for text in texts) else "give a text, or a list of texts"


def _length(value: Any) -> str:
    """Return what is wrong with a limit on the reply's length; "" if it is right."""
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
