"""Rules for the fields of a request: each field is read, passed on, replaced, recorded or refused. No field is silently
dropped.

    read       the messages, whether the reply is streamed, and the number of replies
    passed on  options for the model: tools, the form of the reply, where it ends (`bench.run.models.options`)
    replaced   settings of the client that the experiment's own settings replace, the same for every architecture
    hints      fields that change no reply here: the provider's bookkeeping, how much the model thinks and how wordy it is,
               where a gateway sends the request
    refused    fields that would change a reply, unless the value asks for what happens anyway; and unknown fields

Replaced settings and hints of any dialect are accepted in all dialects, since SDKs send them by default. `settings_set_aside`
returns them for the record. If client and experiment both limit a reply's length, the smaller limit counts.

The role, the content and the tool calls of a message are read. Other fields of an assistant's message are passed on unchanged.
The `name` of a message is accepted and not passed on: AutoGen sends a name with every message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.common.errors import nearest
from bench.run.models.options import LENGTHS, OPTIONS, options_text
from bench.wire.problem import refuse_field

READ_FIELDS = frozenset({"messages", "stream", "stream_options", "n"})
REPLACED = frozenset(
    {
        *("model", "seed", "random_seed", "temperature", "top_p", "top_k", "top_a", "min_p", "typical_p"),
        *("frequency_penalty", "presence_penalty", "repetition_penalty", "repeat_penalty", "length_penalty"),
    }
)
"""Fields that the experiment's settings replace: the model's name and the sampling settings."""
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
VENDOR_FIELD = "extra_body"
"""The field under which Gemini's OpenAI mode reads its own settings, as `extra_body.google`. The rules hold for these settings
too."""
NO_VALUES: tuple[Any, ...] = (None, [])
"""Values of a field that count as a missing field."""
VLLM_FORM_FIELDS = ("guided_json", "guided_choice", "guided_regex", "guided_grammar", "structured_outputs")
"""Fields in which vLLM takes a reply's form."""
FUNCTIONS_REMEDY = "functions have become tools; give tools and tool_choice"


@dataclass(frozen=True)
class Restricted:
    """A field that is refused, and what the client can do. A value in `harmless` is accepted, since it asks for what happens
    anyway."""

    remedy: str
    harmless: tuple[Any, ...] = ()


RESTRICTED: Mapping[str, Restricted] = {
    "functions": Restricted(FUNCTIONS_REMEDY),
    "function_call": Restricted(FUNCTIONS_REMEDY, ("none", "auto")),
    "logprobs": Restricted("no probabilities are given; leave the field out", (False,)),
    "top_logprobs": Restricted("no probabilities are given; leave the field out", (0,)),
    "logit_bias": Restricted("no token is favoured; leave the field out", ({},)),
    "modalities": Restricted("replies are text", (["text"],)),
    "audio": Restricted("replies are text; leave the field out"),
    "prediction": Restricted("what it says would not be passed on; leave the field out"),
    "web_search_options": Restricted("nothing is searched; leave the field out"),
    "plugins": Restricted("nothing is searched or read for a client; leave the field out"),
    "cached_content": Restricted("no content is stored here; send all messages with each request"),
    **dict.fromkeys(VLLM_FORM_FIELDS, Restricted("a form is passed on as response_format; give it there")),
}


def refuse_others(
    fields: Mapping[str, Any], restricted: Mapping[str, Restricted] = RESTRICTED, read_fields: frozenset[str] = READ_FIELDS
) -> None:
    """Raise Problem for the first field that is refused, with the reason and a remedy. `read_fields` holds the fields that are
    read."""
    for field, value in _fields_with_path(fields):
        if why := _objection(field.rpartition(".")[2], value, restricted, read_fields):
            refuse_field(field, why)


def settings_set_aside(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request that the experiment replaces, and the hints, with their values. The model's name is left
    out, since the endpoint gave it to the client."""
    names = (REPLACED | HINTS) - {"model"}
    present = ((path, value) for path, value in _fields_with_path(fields) if value not in NO_VALUES)
    return {path: value for path, value in present if path.rpartition(".")[2] in names}


def _fields_with_path(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of each field. A vendor's settings are yielded one by one, as `extra_body.google.thinking`
    is."""
    for field, value in fields.items():
        if field == VENDOR_FIELD and isinstance(value, dict) and all(isinstance(inner, dict) for inner in value.values()):
            for vendor, settings in value.items():
                yield from ((f"{VENDOR_FIELD}.{vendor}.{name}", inner) for name, inner in settings.items())
        else:
            yield field, value


def _objection(field: str, value: Any, restricted: Mapping[str, Restricted], read_fields: frozenset[str]) -> str:
    """Return why a field with this value is refused, and what to do; "" if it is accepted."""
    accepted_fields = read_fields | REPLACED | HINTS
    if field in accepted_fields or field in OPTIONS or value in NO_VALUES:
        return ""
    if field not in restricted:
        return f"unknown; {nearest(field, accepted_fields | restricted.keys() | set(OPTIONS))}"
    return "" if value in restricted[field].harmless else restricted[field].remedy


def options_among(fields: Mapping[str, Any], parameters: Mapping[str, object]) -> str:
    """Return, as JSON text, the options among these fields for a model with these parameters. Options that the parameters imply
    are left out. Raises Problem for a wrong value."""
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
        limit = length_limit(parameters)
        return limit is not None and value >= limit
    if field == "response_format":
        response_format = parameters.get("response_format")
        return value == {"type": "text"} or (value == {"type": "json_object"} and response_format == "json_object")
    return False


def length_limit(parameters: Mapping[str, object]) -> int | None:
    """Return the experiment's limit on a reply's length, in tokens; None if it has none."""
    extra = parameters.get("extra_body")
    for limit in (parameters.get("max_tokens"), extra.get("max_completion_tokens") if isinstance(extra, Mapping) else None):
        if isinstance(limit, int):
            return limit
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
