"""Refuse packs that are unusable. Each error is one line that says what is wrong and what to do."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from bench.common.errors import PackError, nearest
from bench.common.raised import type_and_message
from bench.common.wording import first_violation
from bench.run.packs.environments import of_packs
from bench.run.packs.names import refuse_names
from bench.run.packs.reads import refuse_prompt, refuse_reads
from bench.scenario import Json, Output, Scenario, Subtask, Task, schema_of


def refuse(scenario: Scenario) -> None:
    """Raise PackError for the first error that makes a pack unusable."""
    task = scenario.task
    where = f"scenario '{scenario.name}'" + (f", instance '{scenario.instance}'" if scenario.instance else "")
    _refuse_names(task, where)
    for subtask in task.subtasks:
        _refuse_output(subtask, where)
        _refuse_functions(subtask, f"{where}: subtask '{subtask.name}'")
    given = _given_documents(scenario, where)
    refuse_reads(task, where, given)
    for subtask in task.subtasks:
        refuse_prompt(subtask, task, where, given)
    _refuse_answer_names(task, where)
    _refuse_function(scenario.grade, f"{where}: grade", 2)
    _refuse_function(scenario.baseline, f"{where}: baseline", 1)
    if not all(isinstance(secret, str) and secret.strip() for secret in scenario.secrets):
        raise PackError(f"{where}: each secret must be a text that is not empty; remove the others")
    _refuse_outputs(scenario.reference, task, f"{where}: the reference answer")
    if missing := [subtask.name for subtask in task.subtasks if subtask.name not in scenario.reference]:
        raise PackError(f"{where}: the reference answer must hold an output for each subtask, and has none for '{missing[0]}'")
    if scenario.environment is not None:
        of_packs(scenario.environment).refuse(scenario.environment, where)
    for wrong in scenario.wrong:
        _refuse_outputs(wrong.outputs, task, f"{where}: the wrong answer '{wrong.name}'")


def _given_documents(scenario: Scenario, where: str) -> tuple[str, ...]:
    """Return the names of the documents that come with each call: the state of the world. Raises PackError if such a name is
    also a name of the task."""
    names = scenario.environment.given if scenario.environment else ()
    for name in names:
        if name in scenario.task.documents or any(name == subtask.name for subtask in scenario.task.subtasks):
            raise PackError(f"{where}: '{name}' is given with each call and is a document or subtask as well; rename one")
    return names


def _refuse_names(task: Task, where: str) -> None:
    """Refuse wrong types and names of documents and subtasks."""
    for name, text in task.documents.items():
        if not (isinstance(name, str) and isinstance(text, str)):
            raise PackError(f"{where}: the document {name!r} must be a text under a name")
    for subtask in task.subtasks:
        if not isinstance(subtask, Subtask):
            raise PackError(f"{where}: {subtask!r} stands among the subtasks; it must be a bench.scenario.Subtask")
        _refuse_wrong_fields(subtask, f"{where}: subtask '{subtask.name}'")
    names = [subtask.name for subtask in task.subtasks]
    refuse_names(names, "subtask", where)
    for name in names:
        if name in task.documents:
            raise PackError(f"{where}: the name '{name}' appears twice among its subtasks and documents; rename one")


def _refuse_wrong_fields(subtask: Subtask, where: str) -> None:
    """Refuse a subtask whose `reads` is no tuple of names or whose instructions are empty. `where` names the subtask in
    the message."""
    reads: Any = subtask.reads
    if isinstance(reads, str):
        raise PackError(f'{where}: reads is a text; write reads=("{reads}",), with a comma')
    if not isinstance(reads, tuple) or not all(isinstance(name, str) for name in reads):
        raise PackError(f'{where}: reads must be a tuple of names, as in reads=("notes.txt",)')
    if not isinstance(subtask.instructions, str) or not subtask.instructions.strip():
        raise PackError(f"{where}: its instructions are empty; write what is asked")


def _refuse_output(subtask: Subtask, where: str) -> None:
    """Raise PackError if the output type of a subtask is not usable."""
    output: Any = subtask.output
    if not (isinstance(output, type) and issubclass(output, Output)):
        raise PackError(f"{where}: subtask '{subtask.name}': output must be a class derived from bench.scenario.Output")
    if not any(field.is_required() for field in output.model_fields.values()):
        problem = f"the output of '{subtask.name}' has no required field"
        raise PackError(f"{where}: {problem}, so that no missing field could ever be noticed; require one")
    try:
        json.dumps(schema_of(output))  # architectures show its form, and an endpoint can hold a model to it
    except Exception as error:
        raise PackError(
            f"{where}: subtask '{subtask.name}': its output has no JSON schema: {type_and_message(error)}"
        ) from error


def _refuse_functions(subtask: Subtask, where: str) -> None:
    """Refuse a subtask whose checks or signals are no functions of the right number of values."""
    if not isinstance(subtask.checks, tuple):
        raise PackError(f"{where}: checks must be a tuple of functions, as in checks=(my_check,)")
    for check in subtask.checks:
        _refuse_function(check, f"{where}: the check", 2)
    for signal in ("sufficient", "skip", "finds"):
        if (function := getattr(subtask, signal)) is not None:
            _refuse_function(function, f"{where}: {signal}", 1)


PARAMETERS = {1: "one value", 2: "two values"}
SIGNATURES = {
    "the check": "(output, context)",
    "sufficient": "(output)",
    "skip": "(outputs)",
    "finds": "(output)",
    "grade": "(answer, truth)",
    "baseline": "(documents)",
}


def _refuse_function(function: Callable[..., Any] | Any, what: str, count: int) -> None:
    """Raise PackError unless this is a function of `count` values. `what` names it in the message."""
    if not callable(function):
        raise PackError(f"{what} {function!r} is not a function")
    if not accepts_values(function, count):
        name = getattr(function, "__name__", repr(function))
        raise PackError(f"{what} `{name}` must take {PARAMETERS[count]}: {SIGNATURES[what.rpartition(': ')[2]]}")


def accepts_values(function: Callable[..., Any], count: int) -> bool:
    """Return whether a function can be called with `count` values."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # its signature is unknown
        return True
    return True


def _refuse_answer_names(task: Task, where: str) -> None:
    """Refuse an answer that names an unknown subtask, or a subtask twice."""
    names = [subtask.name for subtask in task.subtasks]
    for name in task.answer:
        if name not in names:
            raise PackError(f"{where}: answer names '{name}', which is not a subtask; {nearest(str(name), names)}")
        if task.answer.count(name) > 1:
            raise PackError(f"{where}: answer names '{name}' twice; name each subtask at most once")


def _refuse_outputs(answer: Mapping[str, Json], task: Task, what: str) -> None:
    """Raise PackError if an answer does not fit the schemas of the task's subtasks. `what` names the answer."""
    outputs = {subtask.name: subtask.output for subtask in task.subtasks}
    if not isinstance(answer, Mapping):
        raise PackError(f"{what} must map each subtask to its output")
    for name, value in answer.items():
        if name not in outputs:
            raise PackError(f"{what} holds an output for '{name}', which is not a subtask; {nearest(str(name), outputs)}")
        try:
            json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError) as error:
            raise PackError(f"{what} has a value for '{name}' that is not JSON: {type_and_message(error)}") from error
        try:
            outputs[name].model_validate(value)
        except ValidationError as error:
            first = first_violation(error)
            raise PackError(f"{what} does not fit the schema of '{name}': {first.place or 'it'} {first.words}") from error
