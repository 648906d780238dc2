"""The JSON schema of the answer to a call, for models that can be held to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, create_model

from bench.scenario import Output, Subtask, schema_of


def answer_schema(subtasks: Sequence[Subtask]) -> Mapping[str, Any]:
    """Return the JSON schema of the answer to a call: one subtask's output schema, or an object with one required property for
    each subtask. It is cached."""
    return _schema(tuple([(subtask.name, subtask.output) for subtask in subtasks]))


@lru_cache(maxsize=256)
def _schema(outputs: tuple[tuple[str, type[Output]], ...]) -> Mapping[str, Any]:
    """Return the JSON schema of an answer with these outputs, each with its subtask's name."""
    fields: dict[str, Any] = {name: (output, ...) for name, output in outputs}
    answer: type[BaseModel] = outputs[0][1] if len(outputs) == 1 else create_model("Answer", **fields)
    return schema_of(answer)
