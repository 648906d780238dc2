"""Compute two digests of a scenario: of all that determines its trials, and of all that only determines their grades.

asked       the digest of all that is asked: texts, schemas, inputs, and the code that verifies
graded_by   the digest of the truth, and of the code that only the grader and the baseline reach

A pack's README, generator, reference and wrong answers are in neither digest.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bench.common.errors import PackError
from bench.run.packs.code import PackCode, unwrap
from bench.run.packs.environments import of_packs
from bench.scenario import Json, Scenario, Subtask, schema_of


def asked_digest(scenario: Scenario, folder: Path, code: PackCode) -> str:
    """Return the digest of all that is asked. The scenario must have its final name, variant and instance."""
    task = scenario.task
    return _digest(
        {
            "scenario": [scenario.name, scenario.variant, scenario.instance],
            "role": task.role,
            "documents": list(task.documents.items()),
            "subtasks": [_subtask(subtask) for subtask in task.subtasks],
            "answer": task.answer_names,
            "code": _files(code.asked, folder),
            **(
                {"environment": of_packs(scenario.environment).declaration(scenario.environment)}
                if scenario.environment
                else {}
            ),
        }
    )


def grading_digest(scenario: Scenario, folder: Path, code: PackCode) -> str:
    """Return the digest of the truth and the grading code. Raises PackError if the truth is neither a folder nor a JSON
    value."""
    return _digest(
        {
            "truth": _truth(scenario.truth, folder),
            "functions": [function_of(scenario.grade), function_of(scenario.baseline)],
            "code": _files(code.grading, folder),
        }
    )


def _subtask(subtask: Subtask) -> Json:
    """Return the parts of a subtask that its digest covers, as JSON."""
    signals = (subtask.sufficient, subtask.skip, subtask.finds)
    return {
        "name": subtask.name,
        "instructions": subtask.instructions,
        "reads": subtask.reads,
        "output": schema_of(subtask.output),
        "checks": [function_of(check) for check in subtask.checks],
        "signals": [signal and function_of(signal) for signal in signals],
        "checkpoint": subtask.checkpoint,
    }


def function_of(function: Callable[..., Any]) -> Json:
    """Return a function's name, and the values bound to it, which can differ by instance."""
    bound: list[Any] = []
    while isinstance(function, functools.partial):
        bound += [function.args, function.keywords]
        function = function.func
    inner = unwrap(function)
    bound += [getattr(inner, "__defaults__", None), getattr(inner, "__kwdefaults__", None)]
    for cell in getattr(inner, "__closure__", None) or ():
        try:
            bound.append(cell.cell_contents)
        except ValueError:  # a name without a value
            continue
    return [getattr(inner, "__qualname__", type(inner).__qualname__), [value_of(value) for value in bound]]


def value_of(value: Any) -> Json:
    """Return a bound value as JSON. For a value that JSON cannot hold, return the name of its type and not its address, which
    differs each time."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return [[value_of(key), value_of(item)] for key, item in value.items()]
    if isinstance(value, list | tuple):
        return [value_of(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(value_of(item)) for item in value)
    if isinstance(value, BaseModel):
        return value_of(value.model_dump())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [value_of(getattr(value, field.name)) for field in dataclasses.fields(value)]
    return type(value).__qualname__


def _truth(truth: Any, folder: Path) -> Json:
    """Return the truth as JSON; a folder as the digests of its files. Raises PackError for anything else."""
    if isinstance(truth, Path):
        return _files((path for path in sorted(truth.rglob("*")) if path.is_file() and "__pycache__" not in path.parts), folder)
    try:
        json.dumps(truth, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise PackError(f"{folder / 'scenario.py'}: truth must be a folder's Path or a JSON value: {error}") from error
    return truth


def _files(paths: Iterable[Path], folder: Path) -> Json:
    """Return each file's path in the folder, or its name if it is elsewhere, and the digest of its bytes with LF line ends."""
    root, files = folder.resolve(), []
    for path in paths:
        file = path.resolve()
        name = file.relative_to(root).as_posix() if file.is_relative_to(root) else file.name
        files.append([name, hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()])
    return files


def _digest(content: Json) -> str:
    """Return a short digest of a JSON value."""
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:20]
