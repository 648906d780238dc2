"""Types and functions that the formats share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AliasPath, BaseModel, ConfigDict, Field

from bench.common.bounds import BoundedTable, Many
from bench.elsewhere.trials import AskedCall

Arguments = BoundedTable[str, Any]
ItemId = Annotated[str, Field(coerce_numbers_to_str=True, max_length=500)]
ChatRole = Literal["system", "user", "assistant", "tool"]
"""The roles of messages in OpenAI's form."""
NO_OBJECT = "(no JSON object)"
"""The name under which a text of arguments is kept that is no JSON object."""


class MemberModel(BaseModel):
    """The members that are read of an object. Other members are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ChatCall(MemberModel):
    """A tool call inside a message in OpenAI's form."""

    id: ItemId
    name: str = Field(validation_alias=AliasPath("function", "name"))
    arguments: str = Field("{}", validation_alias=AliasPath("function", "arguments"))


class ChatMessage(MemberModel):
    """A chat message in OpenAI's form."""

    role: str
    content: str | None = None
    tool_calls: Many[ChatCall] | None = None
    tool_call_id: ItemId | None = None
    name: str | None = None


def calls_in_message(calls: Iterable[ChatCall] | None) -> tuple[AskedCall, ...]:
    """Return the tool calls in a message."""
    return tuple(AskedCall(call.id, call.name, arguments_of(call.arguments)) for call in calls or ())


def arguments_of(text: str) -> Mapping[str, Any]:
    """Return the arguments of a call by name, from the JSON text that a model wrote."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {NO_OBJECT: text}


def name_of(file_path: str, ending: str) -> str:
    """Return the name of a file without its folder and its ending."""
    return file_path.rpartition("/")[2].removesuffix(ending)
