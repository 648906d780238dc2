"""Write the task as JSON for an outside system, and read the system's answer."""

from __future__ import annotations

import json
from typing import Any

from bench.record.messages import Message
from bench.run.trial.endpoint_session import EndpointSession
from bench.run.trial.key import TrialKey
from bench.run.trial.prompt import render
from bench.scenario import Json, Subtask, Task, schema_of
from bench.wire.problem import Problem, refuse_oversized

GAVE_UP = "the system gave up"


def task_as_json(task: Task, key: TrialKey, session: EndpointSession) -> dict[str, Any]:
    """Return the task as JSON: its documents and subtasks, and the addresses of its model."""
    return {
        "scenario": key.scenario,
        "instance": key.instance,
        "repetition": key.repetition,
        "base_url": session.base_url(),
        "role": task.role,
        "documents": dict(task.documents),
        "subtasks": [
            {
                "name": subtask.name,
                "instructions": subtask.instructions,
                "reads": list(subtask.reads),
                "base_url": session.base_url(subtask),
                "messages": [{"role": message.role, "content": message.content} for message in _prompt(task, subtask, session)],
                "schema": schema_of(subtask.output),
            }
            for subtask in task.subtasks
        ],
    }


def outputs_of(body: bytes, task: Task, session: EndpointSession) -> dict[str, str]:
    """Return the text of each subtask's output in an answer. Raises Problem if the body is no answer to this task, or if the
    model was not asked for each output."""
    outputs = _object(body)
    names = [subtask.name for subtask in task.subtasks]
    if set(outputs) != set(names):
        raise Problem(400, f"an answer has one output for each of {', '.join(names)}; this has {', '.join(outputs) or 'none'}")
    missing = [name for name in names if not session.has_reply(name)]
    if missing:
        raise Problem(409, f"no reply was ever given for {', '.join(missing)}; ask at {session.base_url()} for all subtasks")
    try:
        return {name: output if isinstance(output, str) else json.dumps(output) for name, output in outputs.items()}
    except RecursionError:
        raise Problem(400, "an output is nested too deeply") from None


def reason_of(body: bytes) -> str:
    """Return why a system gives up. Raises Problem if the body is neither empty nor a JSON object."""
    return str(_object(body).get("reason") or GAVE_UP) if body.strip() else GAVE_UP


def _prompt(task: Task, subtask: Subtask, session: EndpointSession) -> tuple[Message, ...]:
    """Return our prompt for a subtask with the documents that it reads. Other subtasks' outputs do not exist yet."""
    inputs = {name: task.documents[name] for name in subtask.reads if name in task.documents}
    return render(task, [subtask], inputs, None, "none", session.answer_format)


def _object(body: bytes) -> dict[str, Json]:
    """Return the JSON object in a body. Raises Problem if the body is anything else."""
    refuse_oversized(body)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise Problem(400, "the body is no JSON") from None
    if not isinstance(value, dict):
        raise Problem(400, "the body is no JSON object")
    return value
