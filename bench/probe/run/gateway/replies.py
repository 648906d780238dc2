"""Requests to a model and its replies in the three APIs that agents use: how they are parsed, joined from a stream, and
truncated."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from bench.probe.run.gateway.bodies import json_of
from bench.probe.run.gateway.server_sent import data_of

Fields = dict[str, Any]
STRUCTURE_FIELDS = frozenset(
    (
        *("role", "type", "id", "call_id", "tool_call_id", "tool_use_id", "status", "signature", "encrypted_content", "phase"),
        *("data", "url", "image_url", "source", "media_type", "detail", "cache_control"),
    )
)
"""Fields of a message whose values are not counted as text."""
TEXT_FIELDS = frozenset(("content", "text", "delta", "arguments", "partial_json"))
"""Fields of a piece that hold its text."""


@dataclass
class ModelReply:
    """A model's reply: its text, its tool calls as (name, arguments as JSON), and the reason why it ended."""

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: str = ""

    @property
    def value(self) -> JsonValue:
        """The reply as it is recorded."""
        calls: list[JsonValue] = [{"name": name, "arguments": _parse_arguments(arguments)} for name, arguments in self.calls]
        return {"text": self.text, "calls": calls, "finish": self.finish}

    @property
    def texts(self) -> Iterator[str]:
        """The texts whose tokens are counted."""
        yield self.text
        for call in self.calls:
            yield from call


@dataclass(frozen=True)
class ModelApi:
    """An API of models.

    path           the end of the path of its requests
    prompt_fields  the fields of a request that hold messages
    read           parses a reply
    join           joins the data of a stream's events to the reply that they form
    end            matches the end of a stream; the model's text cannot match, since in JSON it has no line end
    is_piece       whether an event holds a piece of a reply
    cut            truncates a reply: half of its text, and as the reason that the length reached the limit
    cut_event      (event, earlier events) -> the event to send after the truncation; None if it is not sent
    error          (kind, text) -> the body of an error
    """

    path: str
    prompt_fields: tuple[str, ...]
    read: Callable[[Fields], ModelReply]
    join: Callable[[Iterable[Fields]], Fields]
    end: re.Pattern[bytes]
    is_piece: Callable[[Fields], bool]
    cut: Callable[[Fields], Fields]
    cut_event: Callable[[Fields, Sequence[Fields]], Fields | None]
    error: Callable[[str, str], Fields]


def api_of(path: str) -> ModelApi | None:
    """Return the API in which a request to this path asks for a reply; None if the path is for something else."""
    return next((api for api in APIS if path.endswith(api.path)), None)


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in messages. The caller bounds how deeply a value is nested."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name not in STRUCTURE_FIELDS:
                yield from texts_in(item)


def fields_in(events: Iterable[bytes]) -> list[Fields]:
    """Return the JSON objects in the data of a stream's events."""
    return [value for value in map(json_of, map(data_of, events)) if isinstance(value, dict)]


def cut_stream(api: ModelApi, events: Sequence[bytes]) -> list[tuple[bytes, Fields | None]]:
    """Return the events of a stream that is truncated after half of its pieces. Each event comes with its new data, or with
    None if its data stays the same."""
    data_of_events = [value if isinstance(value := json_of(data_of(event)), dict) else None for event in events]
    pieces = [index for index, data in enumerate(data_of_events) if data is not None and api.is_piece(data)]
    # the piece that is halved; without pieces all events come after the cut, at index 0
    cut_index, later_pieces = (pieces[len(pieces) // 2], set(pieces)) if pieces else (0, set[int]())
    cut, earlier_data = list[tuple[bytes, Fields | None]](), list[Fields]()
    for index, (event, data) in enumerate(zip(events, data_of_events, strict=True)):
        if data is None or index < cut_index:
            cut.append((event, None))
            earlier_data += [data] if data else []
        elif index == cut_index and pieces:
            cut.append((event, _halve(data)))
        elif index not in later_pieces and (new_data := api.cut_event(data, earlier_data)) is not None:
            cut.append((event, new_data))
    return cut


def _halve(value: Any) -> Any:
    """Return a piece of a reply with half of each text."""
    if isinstance(value, list):
        return [_halve(item) for item in value]
    if not isinstance(value, dict):
        return value
    is_text = {name: name in TEXT_FIELDS and isinstance(item, str) for name, item in value.items()}
    return {name: item[: len(item) // 2] if is_text[name] else _halve(item) for name, item in value.items()}


def _parse_arguments(arguments: str) -> JsonValue:
    """Return the parsed arguments of a tool call; the text itself if it is no JSON."""
    value = json_of(arguments)
    return arguments if value is None else value


def _objects_in(value: Any) -> list[Fields]:
    """Return the objects in a list; [] for another value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _as_object(value: Any) -> Fields:
    """Return a value that is an object; otherwise {}."""
    return value if isinstance(value, dict) else {}


def _as_text(value: Any) -> str:
    """Return a value that is a text; otherwise an empty text."""
    return value if isinstance(value, str) else ""


def _openai_error(kind: str, text: str) -> Fields:
    """Return the body of an error in the form of OpenAI's APIs."""
    return {"error": {"message": text, "type": kind, "param": None, "code": None}}


# Chat completions


def _read_chat(reply: Fields) -> ModelReply:
    """Parse a reply of Chat Completions."""
    choices = _objects_in(reply.get("choices"))
    messages = [_as_object(choice.get("message")) for choice in choices]
    functions = [_as_object(call.get("function")) for message in messages for call in _objects_in(message.get("tool_calls"))]
    finish = next((_as_text(choice.get("finish_reason")) for choice in choices), "")
    return ModelReply(
        "".join(_as_text(message.get("content")) for message in messages),
        tuple((_as_text(function.get("name")), _as_text(function.get("arguments"))) for function in functions),
        finish,
    )


def _join_chat(events: Iterable[Fields]) -> Fields:
    """Join the events of a stream of Chat Completions to a reply. Each event has a piece of the text or of a tool call."""
    choices = dict[Any, Fields]()
    for event in events:
        for choice in _objects_in(event.get("choices")):
            joined = choices.setdefault(str(choice.get("index")), {"texts": [], "calls": {}, "finish": None})
            delta = _as_object(choice.get("delta"))
            joined["texts"].append(_as_text(delta.get("content")))
            joined["finish"] = choice.get("finish_reason") or joined["finish"]
            for call in _objects_in(delta.get("tool_calls")):
                name, arguments = joined["calls"].setdefault(str(call.get("index")), ([], []))
                name.append(_as_text(_as_object(call.get("function")).get("name")))
                arguments.append(_as_text(_as_object(call.get("function")).get("arguments")))
    return {"choices": [_join_choice(choice) for choice in choices.values()]}


def _join_choice(choice: Fields) -> Fields:
    """Return a choice of a reply, from the pieces of its text and its tool calls."""
    calls = [{"function": {"name": "".join(name), "arguments": "".join(text)}} for name, text in choice["calls"].values()]
    return {"message": {"content": "".join(choice["texts"]), "tool_calls": calls}, "finish_reason": choice["finish"]}


def _cut_chat(reply: Fields) -> Fields:
    """Truncate a reply: each choice is halved."""
    return {**reply, "choices": [{**_halve(choice), "finish_reason": "length"} for choice in _objects_in(reply.get("choices"))]}


def _is_chat_piece(event: Fields) -> bool:
    """Return whether an event has a piece of the text or of a tool call."""
    deltas = [_as_object(choice.get("delta")) for choice in _objects_in(event.get("choices"))]
    return any(delta.get("content") or delta.get("tool_calls") for delta in deltas)


def _cut_chat_event(event: Fields, _: Sequence[Fields]) -> Fields:
    """Return an event after the truncation: its choices end by their length."""
    choices = [
        {**choice, "finish_reason": "length"} if choice.get("finish_reason") else choice
        for choice in _objects_in(event.get("choices"))
    ]
    return {**event, "choices": choices}


# Responses


def _read_response(reply: Fields) -> ModelReply:
    """Parse a reply of the API Responses."""
    output = _objects_in(reply.get("output"))
    parts = [part for item in output for part in _objects_in(item.get("content"))]
    calls = [item for item in output if item.get("type") == "function_call"]
    return ModelReply(
        "".join(_as_text(part.get("text")) for part in parts if part.get("type") == "output_text"),
        tuple((_as_text(call.get("name")), _as_text(call.get("arguments"))) for call in calls),
        _as_text(reply.get("status")),
    )


def _join_response(events: Iterable[Fields]) -> Fields:
    """Return the whole response from the last event of a stream, or a response with the text so far if the stream has broken
    off."""
    pieces, last = list[str](), dict[str, Any]()
    for event in events:
        if event.get("type") == "response.output_text.delta":
            pieces.append(_as_text(event.get("delta")))
        if event.get("type") in RESPONSE_END_EVENTS:
            last = _as_object(event.get("response"))
    return last or {"output": [{"content": [{"type": "output_text", "text": "".join(pieces)}]}]}


RESPONSE_END_EVENTS = ("response.completed", "response.incomplete", "response.failed")


def _cut_response(reply: Fields) -> Fields:
    """Truncate a response: its last item is halved."""
    output = _objects_in(reply.get("output"))
    output[-1:] = [{**_halve(item), "status": "incomplete"} for item in output[-1:]]
    return {**reply, "output": output, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}


def _cut_response_event(event: Fields, _: Sequence[Fields]) -> Fields | None:
    """Return the last event of a stream with the truncated response; None for other events after the truncation."""
    if event.get("type") in RESPONSE_END_EVENTS:
        return {**event, "type": "response.incomplete", "response": _cut_response(_as_object(event.get("response")))}
    return None


def _is_response_piece(event: Fields) -> bool:
    """Return whether an event has a piece of the text or of a tool call."""
    return event.get("type") in ("response.output_text.delta", "response.function_call_arguments.delta")


# Anthropic's messages


def _read_message(reply: Fields) -> ModelReply:
    """Parse a reply of Anthropic's Messages."""
    blocks = _objects_in(reply.get("content"))
    uses = [block for block in blocks if block.get("type") == "tool_use"]
    return ModelReply(
        "".join(_as_text(block.get("text")) for block in blocks if block.get("type") == "text"),
        tuple((_as_text(block.get("name")), _arguments(block)) for block in uses),
        _as_text(reply.get("stop_reason")),
    )


def _arguments(block: Fields) -> str:
    """Return the arguments of a tool call as JSON."""
    arguments = block.get("input")
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _join_message(events: Iterable[Fields]) -> Fields:
    """Join the events of a stream of Messages to a reply. Each block of content comes in pieces."""
    message, blocks = dict[str, Any](), dict[Any, tuple[Fields, list[str]]]()
    for event in events:
        match event.get("type"):
            case "message_start":
                message = dict(_as_object(event.get("message")))
            case "content_block_start":
                blocks[str(event.get("index"))] = (_as_object(event.get("content_block")), [])
            case "content_block_delta":
                delta, (_, pieces) = _as_object(event.get("delta")), blocks.setdefault(str(event.get("index")), ({}, []))
                pieces.append(_as_text(delta.get("text")) + _as_text(delta.get("partial_json")))
            case "message_delta":
                message |= _as_object(event.get("delta"))
    return {**message, "content": [_join_block(block, "".join(pieces)) for block, pieces in blocks.values()]}


def _join_block(block: Fields, text: str) -> Fields:
    """Return a block of content with its whole text, or the whole arguments of its tool call."""
    return {**block, "input": text} if block.get("type") == "tool_use" else {**block, "text": text}


def _cut_message(reply: Fields) -> Fields:
    """Truncate a message: its last block is halved."""
    blocks = _objects_in(reply.get("content"))
    blocks[-1:] = [{**_halve(block), "input": {}} if "input" in block else _halve(block) for block in blocks[-1:]]
    return {**reply, "content": blocks, "stop_reason": "max_tokens"}


def _cut_message_event(event: Fields, before: Sequence[Fields]) -> Fields | None:
    """Return an event after the truncation: its message ends by its length. Return None for an event of a block that has not
    begun."""
    if event.get("type") == "message_delta":
        return {**event, "delta": {**_as_object(event.get("delta")), "stop_reason": "max_tokens"}}
    begun = {earlier.get("index") for earlier in before if earlier.get("type") == "content_block_start"}
    return event if event.get("type") == "message_stop" or event.get("index") in begun else None


APIS: tuple[ModelApi, ...] = (
    ModelApi(
        "/chat/completions",
        ("messages",),
        _read_chat,
        _join_chat,
        re.compile(rb"^data: ?\[DONE\]", re.MULTILINE),
        _is_chat_piece,
        _cut_chat,
        _cut_chat_event,
        _openai_error,
    ),
    ModelApi(
        "/responses",
        ("instructions", "input"),
        _read_response,
        _join_response,
        re.compile(rb"^event: ?response\.(?:completed|incomplete|failed)", re.MULTILINE),
        _is_response_piece,
        _cut_response,
        _cut_response_event,
        _openai_error,
    ),
    ModelApi(
        "/messages",
        ("system", "messages"),
        _read_message,
        _join_message,
        re.compile(rb"^event: ?message_stop", re.MULTILINE),
        lambda event: event.get("type") == "content_block_delta",
        _cut_message,
        _cut_message_event,
        lambda kind, text: {"type": "error", "error": {"type": kind, "message": text}},
    ),
)
