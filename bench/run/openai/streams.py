"""Read a completion that arrives as a stream of events. Requests ask for no stream, but some endpoints always send one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bench.record.tool_calls import OF_A_FUNCTION
from bench.run.openai.documents import UnreadableDocument, document_of
from bench.run.openai.words import word_in

MAX_EVENTS = 50_000
LINE_STARTS = ("data:", "event:", "id:", "error:", ":")
"""The beginnings of a stream's lines. Until late in 2025 llama.cpp sent an error in a field named `error`."""


_LINE = re.compile(r"^(data|error):(.*)", re.MULTILINE)


def is_stream(body: str) -> bool:
    """Return whether a body is a stream of server-sent events."""
    return body.lstrip("\ufeff \t\r\n").startswith(LINE_STARTS)


def completion_in(body: str) -> dict[str, Any]:
    """Join the events of a streamed body into one completion. Raises UnreadableDocument if the events cannot be read or end
    before the completion does."""
    completion, choice, message = dict[str, Any](), dict[str, Any](), _Message()
    for event in _events(body):
        completion |= _fields_with_values(event, "choices")
        for piece in event["choices"] if isinstance(event.get("choices"), list) else ():
            if isinstance(piece, dict) and piece.get("index", 0) == 0:
                choice |= _fields_with_values(piece, "delta", "message")
                delta = piece.get("delta") or piece.get("message")
                message.add(delta if isinstance(delta, dict) else {})
    if not choice.get("finish_reason") and not completion.get("error"):
        raise UnreadableDocument("broke_off" if choice or message.whole else "none")
    return {**completion, "choices": [{**choice, "message": message.whole}]}


def _fields_with_values(fields: Mapping[str, Any], *except_: str) -> dict[str, Any]:
    """Return the fields that have a value, without the fields `except_`. Many servers write an empty word, or `"null"`, in all
    events but the last."""
    return {
        name: value
        for name, value in fields.items()
        if value is not None and (not isinstance(value, str) or word_in(value)) and name not in except_
    }


def _events(body: str) -> Iterator[dict[str, Any]]:
    """Yield the events of a body. Only the line ends of the standard count: a text can contain other characters that Python
    treats as line ends."""
    number = 0
    for line in _LINE.finditer(body.replace("\r\n", "\n").replace("\r", "\n")):
        field, data = line[1], line[2].strip()
        if data in ("", "[DONE]") or data.startswith(":"):  # a comment, wrapped as data
            continue
        if number == MAX_EVENTS:
            raise UnreadableDocument("too_many")
        number += 1
        document = document_of(data)
        yield {"error": document} if field == "error" else document


class _Message:
    """A message that is joined from the pieces of a stream: its texts, its lists and its tool calls."""

    def __init__(self) -> None:
        self._fields = dict[str, Any]()
        self._pieces = dict[str, list[Any]]()
        self._lists = set[str]()
        self._calls = list[_CallPieces]()
        self._last_by_index = dict[str, _CallPieces]()

    def add(self, piece: Mapping[str, Any]) -> None:
        """Add the fields of a piece of the stream. Texts and lists are joined; other fields keep their first value."""
        for name, value in piece.items():
            if name == "tool_calls" and isinstance(value, list):
                for call in [_nest(item) for item in value if isinstance(item, dict)]:
                    self._call_of(call).add(call)
            elif name == "function_call" and isinstance(value, dict):
                self._call_of(legacy := {"index": name, "function": value}).add(legacy)
            elif isinstance(value, list):
                self._lists.add(name)
                self._pieces.setdefault(name, []).extend(value)
            elif isinstance(value, str) and name != "role":
                self._pieces.setdefault(name, []).append(value)
            elif value is not None:
                self._fields.setdefault(name, value)

    def _call_of(self, piece: Mapping[str, Any]) -> _CallPieces:
        """Return the tool call that a piece belongs to, by its index. Some servers give parallel calls one index, or none: a
        piece that names a function and has another id begins a new call. A piece without a name continues a call, whatever its
        id."""
        index, id_ = str(piece.get("index")), piece.get("id")
        call = self._last_by_index.get(index)
        has_other_id = id_ != call.id if call and id_ and call.id else index == "None"
        if call is None or (has_other_id and _function_in(piece).get("name")):
            call = self._last_by_index[index] = _CallPieces()
            self._calls.append(call)
        return call

    @property
    def whole(self) -> dict[str, Any]:
        """The message from all its pieces."""
        joined = {name: parts if name in self._lists else "".join(parts) for name, parts in self._pieces.items()}
        return {**self._fields, **joined, **({"tool_calls": [call.whole for call in self._calls]} if self._calls else {})}


class _CallPieces:
    """A tool call that is joined from the pieces of a stream. Its name comes once, is repeated with each piece, or comes in
    pieces."""

    def __init__(self) -> None:
        self.id: object = ""
        self._name = ""
        self._arguments = list[str]()
        self._other_fields = dict[str, Any]()
        self._function_fields = dict[str, Any]()

    def add(self, piece: Mapping[str, Any]) -> None:
        """Add a piece of the stream: name and arguments are joined, other fields keep their first value."""
        function = _function_in(piece)
        self.id = self.id or piece.get("id") or ""
        if isinstance(name := function.get("name"), str) and name != self._name:
            self._name += name
        if isinstance(arguments := function.get("arguments"), str):
            self._arguments.append(arguments)
        self._other_fields = _fields_with_values(piece, "function") | self._other_fields
        self._function_fields = _fields_with_values(function, "name") | self._function_fields

    @property
    def whole(self) -> dict[str, Any]:
        """The tool call from all its pieces."""
        arguments = {"arguments": "".join(self._arguments)} if self._arguments else {}
        return {**self._other_fields, "id": self.id, "function": {**self._function_fields, "name": self._name, **arguments}}


def _nest(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a piece of a tool call with its function's fields under `function`, if a server leaves that level out."""
    if "function" in call:
        return call
    function = {name: call[name] for name in OF_A_FUNCTION if name in call}
    return {"id": call.get("id"), "index": call.get("index"), "function": function}


def _function_in(piece: Mapping[str, Any]) -> Mapping[str, Any]:
    function = piece.get("function")
    return function if isinstance(function, dict) else {}
