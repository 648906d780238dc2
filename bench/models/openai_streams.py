"""A completion that comes as a stream of events, though none was asked for: some endpoints know no other way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.models.openai_documents import UnreadableDocument, document_of

MOST_EVENTS = 50_000


def is_stream(body: str) -> bool:
    return body.lstrip("\ufeff \t\r\n").startswith(("data:", "event:", "id:", ":"))


def completion_in(body: str) -> dict[str, Any]:
    """The one document that the events are the pieces of. Raises UnreadableDocument, also where they end before their end."""
    whole, choice, message = dict[str, Any](), dict[str, Any](), _Message()
    for event in _events(body):
        whole |= _there(event, "choices")
        for piece in event["choices"] if isinstance(event.get("choices"), list) else ():
            if isinstance(piece, dict) and piece.get("index", 0) == 0:
                choice |= _there(piece, "delta", "message")
                said = piece.get("delta") or piece.get("message")
                message.add(said if isinstance(said, dict) else {})
    if not choice.get("finish_reason") and not whole.get("error"):
        raise UnreadableDocument("broke_off" if choice or message.whole else "none")
    return {**whole, "choices": [{**choice, "message": message.whole}]}


def _there(fields: Mapping[str, Any], *but: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None and name not in but}


def _events(body: str) -> Iterator[dict[str, Any]]:
    lines = (line.removeprefix("data:").strip() for line in body.splitlines() if line.startswith("data:"))
    for number, data in enumerate(line for line in lines if line not in ("", "[DONE]")):
        if number == MOST_EVENTS:
            raise UnreadableDocument("too_many")
        yield document_of(data)


class _Message:
    """What a message's pieces come to: texts and lists grow, and so do the arguments of each tool call, by its index."""

    def __init__(self) -> None:
        self._fields = dict[str, Any]()
        self._texts = dict[str, list[str]]()
        self._calls = dict[object, _Message]()

    def add(self, piece: Mapping[str, Any], growing: tuple[str, ...] = ()) -> None:
        for name, value in piece.items():
            if name == "tool_calls" and isinstance(value, list):
                for call in filter(_is_object, value):
                    self._part(str(call.get("index", len(self._calls)))).add(call, ("arguments",))
            elif name == "function" and isinstance(value, dict):
                self._part("function").add(value, ("arguments",))
            elif isinstance(value, str) and (name in growing or (not growing and name != "role")):
                self._texts.setdefault(name, []).append(value)
            elif isinstance(value, list) and isinstance(self._fields.get(name), list):
                self._fields[name].extend(value)
            elif value is not None and value != "":
                self._fields[name] = value

    def _part(self, name: str) -> _Message:
        return self._calls.setdefault(name, _Message())

    @property
    def whole(self) -> dict[str, Any]:
        grown = {name: "".join(texts) for name, texts in self._texts.items()}
        calls = {name: call.whole for name, call in self._calls.items()}
        function = {"function": calls.pop("function")} if "function" in calls else {}
        return {**self._fields, **grown, **function, **({"tool_calls": list(calls.values())} if calls else {})}


def _is_object(value: object) -> bool:
    return isinstance(value, dict)
