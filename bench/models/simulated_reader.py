"""What a simulated model does with tools that read documents: it lists them, reads those of its subtasks one by one, and then
answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.models.base import Message
from bench.models.document_tools import LIST, NAME, READ, name_in
from bench.scenario import Call, Task


def next_look(
    task: Task, subtasks: Iterable[str], messages: Sequence[Message], tools: Iterable[Mapping[str, Any]]
) -> Call | None:
    """The next call of the tools; None where they are not offered, or all is read."""
    if not {LIST, READ} <= {tool["function"]["name"] for tool in tools}:
        return None
    made = [call for message in messages for call in message.tool_calls]
    if not any(call.name == LIST for call in made):
        return Call(LIST, {})
    read = {name_in(call.arguments) for call in made if call.name == READ}
    known = {subtask.name: subtask.reads for subtask in task.subtasks}
    needed = [name for subtask in subtasks for name in known.get(subtask, ()) if name in task.documents]
    unread = next((name for name in needed if name not in read), None)
    return Call(READ, {NAME: unread}) if unread else None
