"""The messages of a model's prompt or reply, in the various forms that recording programs write.

The forms are OpenTelemetry's semantic conventions (a role and parts, or a role and content), OpenInference
(`message.content`, `message_content.text`), and the providers' own interfaces, which recording programs copy.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.common.bounds import excess_in
from bench.elsewhere.runs.content import MIN_BYTES_PER_VALUE
from bench.elsewhere.runs.steps import OpenCall

MAX_ADDRESS_LENGTH = 500
"""The most characters of an address in the mark of an image or a file. A longer address contains the file itself."""
ROLE_SYNONYMS = {"model": "assistant", "ai": "assistant", "human": "user", "function": "tool"}
"""Another name of a role -> the role."""
WRAPPERS = ("message", "message_content", "tool_call", "function", "prompt", "completion")
"""Keys that wrap a value: a table with only this key is replaced by the table under the key, and the key is removed from the
beginning of a dotted name."""
TEXT_KINDS = ("text", "input_text", "output_text", "refusal", "compaction", "summary_text", "")
CALL_KINDS = ("tool_call", "tool_use", "function_call", "functionCall", "tool-call", "toolCall")
RESULT_KINDS = (
    "tool_call_response", "tool_result", "function_call_output", "function_response", "functionResponse", "tool-result",
    "toolResult",
)  # fmt: skip
GEMINI_KINDS = (
    "function_call", "functionCall", "function_response", "functionResponse", "inlineData", "inline_data", "fileData",
    "file_data",
)  # fmt: skip
"""Keys of Gemini's parts, which have no type."""
THOUGHT_KINDS = ("reasoning", "thinking", "redacted_thinking")
"""Any other type with "reasoning" in its name is a thought too."""
SERVER_TOOL_KINDS = ("server_tool_call", "server_tool_call_response", "server_tool_use")
MEDIA_KINDS = (
    "uri", "blob", "file", "input_file", "image", "image_url", "input_image", "audio", "input_audio", "video", "document",
    "media",
)  # fmt: skip


@dataclass(frozen=True)
class ImportedMessage:
    """A message: its role, its text, its tool calls, and the results in it with the ids of their calls."""

    role: str
    text: str
    calls: tuple[OpenCall, ...] = ()
    results: tuple[tuple[str, str], ...] = ()

    @property
    def words(self) -> str:
        """The whole text that a model reads or writes: the text of the message, then its tool calls."""
        return "\n".join(filter(None, (self.text, *(f"{call.tool}({call.arguments})" for call in self.calls))))


def message_of(value: Any, left_out: Counter[str], role: str = "user") -> ImportedMessage:
    """Return a message.

    Args:
        value: The message as it is in the file, or only its text.
        left_out: Counts the contents that are not read, or not read unchanged.
        role: The role of a message that names none.
    """
    if not isinstance(value, dict):
        value = {"content": value}
    value = unwrap(value)
    texts, calls, results = list[str](), list[OpenCall](), list[tuple[str, str]]()
    for part in _parts_of(value):
        kind = _kind(part)
        if kind in CALL_KINDS:
            calls.append(_call(part))
        elif kind in RESULT_KINDS:
            results.append(_result(part))
            texts.append(results[-1][1])
        elif kind in THOUGHT_KINDS or "reasoning" in kind.lower():
            left_out["part of reasoning, which is no part of a reply"] += 1
        else:
            texts.append(_text(part, kind, left_out))
    calls += (_call(unwrap(call)) for call in tables_in(value.get("tool_calls")))
    for name in ("reasoning_content", "thinking"):
        if value.get(name):
            left_out["part of reasoning, which is no part of a reply"] += 1
    role = first_text(value, "role") or role
    text = "\n".join(filter(None, texts))
    if id_ := first_text(value, "tool_call_id", "id" if role == "tool" else "tool_call_id"):
        results.append((id_, text))
    return ImportedMessage(ROLE_SYNONYMS.get(role, role), text, tuple(calls), tuple(results))


def _parts_of(value: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the parts of a message, or its content, or the message itself if it is a part."""
    content = next((value[key] for key in ("parts", "content", "contents") if value.get(key) not in (None, "", [])), None)
    if _kind(value) in (*CALL_KINDS, *RESULT_KINDS):
        yield value
    elif isinstance(content, list):
        yield from (unwrap(part) if isinstance(part, dict) else part for part in content)
    elif isinstance(content, dict):
        yield unwrap(content)
    elif content is not None:
        yield content
    elif "text" in value:
        yield value["text"]


def are_parts(value: Any) -> bool:
    """Return whether a value is a list of message parts. A list of tables can also be plain data."""
    known_kinds = {*TEXT_KINDS[:-1], *CALL_KINDS, *RESULT_KINDS, *THOUGHT_KINDS, *SERVER_TOOL_KINDS, *MEDIA_KINDS}
    return (
        isinstance(value, list) and bool(value) and all(isinstance(part, dict) and _kind(part) in known_kinds for part in value)
    )


def _kind(part: Any) -> str:
    """Return the type of a part. Gemini's parts have no type: the key of the part names it."""
    if not isinstance(part, dict):
        return ""
    if part.get("thought") is True:
        return "reasoning"
    return first_text(part, "type") or next((kind for kind in GEMINI_KINDS if part.get(kind) is not None), "")


def _text(part: Any, kind: str, left_out: Counter[str]) -> str:
    """Return the text of a part that is no tool call. Content that is no text is replaced by a mark or by its JSON, and is
    counted."""
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        if kind in TEXT_KINDS and (text := first_text(part, "content", "text", "refusal")):
            return text
        if kind in SERVER_TOOL_KINDS:
            inner = part.get(kind, part.get("input"))
            name = first_text(part, "name") or "server_tool"
            return f"{name}({as_text(inner)})" if kind != "server_tool_call_response" else as_text(inner)
        if kind in (*MEDIA_KINDS, *GEMINI_KINDS):
            left_out[f"part of type '{kind}', of which the prompt has a mark alone"] += 1
            name = first_text(part, "uri", "file_id", "url", "image_url", "source", "file_data", "fileData")
            return f"[{kind}{f': {name}' if name and len(name) <= MAX_ADDRESS_LENGTH else ''}]"
    if part is None or part == {}:
        return ""
    left_out[f"part of type '{kind or type(part).__name__}', read as its JSON"] += 1
    return as_text(part)


def _call(part: Mapping[str, Any]) -> OpenCall:
    """Return the tool call in a part."""
    inner = _with_inner_fields(part, "function", "function_call", "functionCall")
    arguments = next((inner[key] for key in ("arguments", "args", "input", "parameters") if inner.get(key) is not None), "")
    name = first_text(inner, "name", "toolName", "function_name", "function.name") or "tool"
    arguments = arguments if arguments != "" else inner.get("function.arguments", "")
    return OpenCall(first_text(inner, "id", "toolCallId", "call_id", "tool_call_id"), name, as_text(arguments))


def _result(part: Mapping[str, Any]) -> tuple[str, str]:
    """Return the id of a tool call, and its result."""
    inner = _with_inner_fields(part, "function_response", "functionResponse")
    names = ("response", "result", "content", "output", "value")
    value = next((inner[name] for name in names if inner.get(name) is not None), "")
    return first_text(inner, "id", "tool_call_id", "tool_use_id", "call_id", "toolCallId"), text_of_result(value)


def _with_inner_fields(part: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return the fields of a part, and the fields of the table under one of these names in the part."""
    inner: Mapping[str, Any] = next((part[name] for name in names if isinstance(part.get(name), dict)), {})
    return {**part, **inner}


def text_of_result(value: Any) -> str:
    """Return a tool's result: the text of its parts if all are texts, or else its JSON."""
    if (
        isinstance(value, list)
        and value
        and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in value)
    ):
        return "\n".join(part["text"] for part in value)
    return as_text(value)


def unwrap(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a table without OpenInference's wrappings: `{"message": {...}}`, or keys such as `message.role`."""
    if len(value) == 1 and (key := next(iter(value))) in WRAPPERS and isinstance(value[key], dict):
        return unwrap(value[key])
    if not any("." in key for key in value):
        return value
    unwrapped = {}
    for key, inner in value.items():
        prefix, _, name = key.partition(".")
        unwrapped[name if prefix in WRAPPERS else key] = inner
    return unwrapped


def first_text(value: Mapping[str, Any], *names: str) -> str:
    """Return the first of these fields that is a nonempty text, or a number, as a text."""
    for name in names:
        inner = value.get(name)
        if isinstance(inner, dict):
            inner = next((inner[key] for key in ("url", "path", "file_uri", "fileUri") if key in inner), None)
        if inner and isinstance(inner, str | int):
            return str(inner)
    return ""


def tables_in(value: Any) -> list[dict[str, Any]]:
    """Return the tables in a list. A value that is no list contains none."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """Return a text unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def value_of(text: Any) -> Any:
    """Return the value of a JSON object, list or string. Any other text is returned unchanged, also a text that was cut off or
    that exceeds the bound on sparse JSON."""
    if (
        not isinstance(text, str)
        or text.lstrip()[:1] not in ("[", "{", '"')
        or excess_in(text.encode(errors="replace"), MIN_BYTES_PER_VALUE)
    ):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
