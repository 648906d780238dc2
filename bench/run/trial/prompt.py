"""Make the prompt of a call for some subtasks. The prompts of all architectures are made here: architectures differ in which
subtasks share a call, not in words.

system   the pack's role, and the rule that the answer is one JSON object, or also code blocks
user     per subtask: its instructions; then each input, under its name; then the form of the output

The answer formats `json` and `schema` use the same words, and so does `fenced` if the answer has no code. The inputs are the
same in all formats.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache

from bench.common.values import dataclass
from bench.record.form import Repair
from bench.record.formats import DEFAULT, AnswerFormat
from bench.record.messages import Message
from bench.run.answers import fenced
from bench.run.answers.places import is_all_code, without_code
from bench.run.models.rejections import COMPLETED, REJECTED
from bench.run.trial.reading import is_fenced
from bench.run.trial.schema import answer_schema
from bench.run.trial.verification import Rejected
from bench.scenario import Json, Output, Subtask, Task, schema_of

ANSWER_RULE = "Answer with one JSON object of the given form and nothing else."
FENCED_RULE = "Answer with one JSON object and then the code blocks of the given form, and nothing else."
CODE_RULE = "Answer with the code of the given form and nothing else."
NOTHING_TO_READ = "Do the task."
FENCED_REPAIR = " Code stands in its code block behind the JSON."


@dataclass(frozen=True)
class Prompt:
    """The parts of a call's prompt. `tasks` holds the subtasks' instructions, `form` the form of the answer under its heading,
    and `repair` why the last answer was rejected; "" at first."""

    role: str
    rule: str
    tasks: str
    inputs: Mapping[str, str]
    form: str
    repair: str

    @property
    def messages(self) -> tuple[Message, Message]:
        """The system message and the user message, with the task in the user message."""
        user = (self.tasks, *self._read, self.form, self.repair)
        return _system(f"{self.role}\n{self.rule}"), Message("user", "\n\n".join(filter(None, user)))

    @property
    def messages_with_task_in_system(self) -> tuple[Message, Message]:
        """The system message with the whole task, and the user message with the inputs and why an answer was rejected."""
        system = (f"{self.role}\n{self.rule}", self.tasks, self.form)
        user = (*self._read, self.repair)
        return Message("system", "\n\n".join(system)), Message("user", "\n\n".join(filter(None, user)) or NOTHING_TO_READ)

    @property
    def _read(self) -> list[str]:
        return [f"# Input: {name}\n{text}" for name, text in self.inputs.items()]


@lru_cache(maxsize=64)
def _system(text: str) -> Message:
    """Return the same message object for the same text, so that its digest and tokens are computed once."""
    return Message("system", text)


def prompt_of(
    task: Task,
    subtasks: Sequence[Subtask],
    inputs: Mapping[str, str],
    rejected: Rejected | None,
    repair: Repair,
    answer_format: AnswerFormat = DEFAULT,
) -> Prompt:
    """Return the prompt for the outputs of some subtasks.

    Args:
        task: The task that they belong to.
        subtasks: The subtasks, in their order.
        inputs: Name -> text, for all inputs from outside the call.
        rejected: Why their last output was rejected; None if none was.
        repair: How much the model is told about the rejection.
        answer_format: The form of the answer.

    Returns:
        The prompt.
    """
    has_blocks = is_fenced(subtasks, answer_format)
    return Prompt(
        role=task.role,
        rule=(CODE_RULE if is_all_code(answer_schema(subtasks)) else FENCED_RULE) if has_blocks else ANSWER_RULE,
        tasks="\n\n".join(_instructions(subtask, step, len(subtasks)) for step, subtask in enumerate(subtasks, 1)),
        inputs=inputs,
        form=f"# Form of the answer\n{fenced_form(subtasks) if has_blocks else form(subtasks)}",
        repair=_repair(rejected, repair) + (FENCED_REPAIR if has_blocks else "") if rejected and repair != "none" else "",
    )


def render(
    task: Task,
    subtasks: Sequence[Subtask],
    inputs: Mapping[str, str],
    rejected: Rejected | None,
    repair: Repair,
    answer_format: AnswerFormat = DEFAULT,
) -> tuple[Message, Message]:
    """Return the messages of the prompt that `prompt_of` makes of the same arguments."""
    return prompt_of(task, subtasks, inputs, rejected, repair, answer_format).messages


def _instructions(subtask: Subtask, step: int, count: int) -> str:
    """Return the instructions of step `step` of `count`, under a heading."""
    heading = f"# Step {step}: {subtask.name}" if count > 1 else f"# Task: {subtask.name}"
    return f"{heading}\n{subtask.instructions}"


def _repair(rejected: Rejected, repair: Repair) -> str:
    """Return the end of the prompt after a rejection: why the last answer was rejected, and to give the whole answer again."""
    if rejected.reads_as_success:
        return f"{COMPLETED}\nGive the whole answer again."
    last_answer = f"\nIt was:\n{rejected.reply}" if repair == "reason+reply" and rejected.reply else ""
    return f"{REJECTED}\nReason: {rejected.detail}{last_answer}\nGive the whole answer again, corrected."


def form(subtasks: Sequence[Subtask], without_code_fields: bool = False) -> str:
    """Return the form of the answer: of one subtask's output, or of an object with one field per subtask. `without_code_fields`
    leaves out the code, and subtasks that are all code: small models fill an empty object with the code."""
    if len(subtasks) == 1:
        return form_of(subtasks[0].output, without_code_fields)
    json_subtasks = [subtask for subtask in subtasks if not (without_code_fields and is_all_code(schema_of(subtask.output)))]
    fields = [f'"{subtask.name}": {form_of(subtask.output, without_code_fields)}' for subtask in json_subtasks]
    return _in_braces(",\n".join(fields))


def fenced_form(subtasks: Sequence[Subtask]) -> str:
    """Return the form of an answer that has code after its JSON: first the JSON, if there is any, then the code blocks."""
    schema = answer_schema(subtasks)
    return (
        fenced.form(schema) if is_all_code(schema) else f"{form(subtasks, without_code_fields=True)}\n\n{fenced.form(schema)}"
    )


@lru_cache(maxsize=256)
def form_of(output: type[Output], without_code_fields: bool = False) -> str:
    """Return a JSON schema as a person would write it, with descriptions and choices after `//`.

    Choices do not stand in the value's place: small models copy "a" | "b" into their answer, which is then no JSON.
    """
    schema = without_code(schema_of(output)) if without_code_fields else schema_of(output)
    return _form(schema, schema.get("$defs", {}))


def _form(schema: Mapping[str, Json], defs: Mapping[str, Json]) -> str:
    """Return the form of a value that fits this schema."""
    if "$ref" in schema:
        return _form(defs[schema["$ref"].rsplit("/", 1)[-1]], defs)
    if "properties" in schema:
        return _object(schema, defs)
    if "anyOf" in schema:
        return " or ".join(_form(option, defs) for option in schema["anyOf"])
    if schema.get("type") == "array":
        return f"[{_form(schema.get('items', {}), defs)}, ...]"
    low, high = schema.get("minimum"), schema.get("maximum")
    bounds = f" from {low} to {high}" if low is not None and high is not None else ""
    return f"{schema.get('type', 'any value')}{bounds}"


def _object(schema: Mapping[str, Json], defs: Mapping[str, Json]) -> str:
    """Return the form of an object: a line for each field, with its description and choices after `//`."""
    lines = []
    fields = list(schema["properties"].items())
    for number, (name, field) in enumerate(fields, 1):
        comma = "," if number < len(fields) else ""
        text = "; ".join(filter(None, (field.get("description", ""), _choices(field, defs))))
        lines.append(f'"{name}": {_form(field, defs)}{comma}{f"  // {text}" if text else ""}')
    return _in_braces("\n".join(lines))


def _choices(schema: Mapping[str, Json], defs: Mapping[str, Json]) -> str:
    """Return the allowed values that the field, or each item of a list, can have; "" if they are not restricted."""
    if "$ref" in schema:
        return _choices(defs[schema["$ref"].rsplit("/", 1)[-1]], defs)
    if "const" in schema or "enum" in schema:
        return "one of " + ", ".join(
            json.dumps(value, ensure_ascii=False) for value in schema.get("enum", [schema.get("const")])
        )
    if schema.get("type") == "array":
        inner = _choices(schema.get("items", {}), defs)
        return f"each {inner}" if inner else ""
    return "; ".join(filter(None, (_choices(option, defs) for option in schema.get("anyOf", ()))))


def _in_braces(fields: str) -> str:
    return "{}" if not fields else "{\n  " + fields.replace("\n", "\n  ") + "\n}"
