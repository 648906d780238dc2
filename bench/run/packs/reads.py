"""Refuse subtasks that read missing inputs, and prompts that name inputs that their subtask does not read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from bench.common.errors import PackError, nearest
from bench.scenario import Subtask, Task

DOCUMENT_SUFFIXES = frozenset({".csv", ".json", ".jsonl", ".log", ".md", ".txt", ".yaml", ".yml"})
"""A name with one of these endings means a document, even if the pack has no document of this name."""


def refuse_reads(task: Task, where: str, given: Sequence[str] = ()) -> None:
    """Raise PackError unless each subtask reads only documents, `given` inputs and earlier subtasks, and each document is
    read."""
    available: set[str] = {*task.documents, *given}
    names = {subtask.name for subtask in task.subtasks}
    for subtask in task.subtasks:
        for name in subtask.reads:
            problem = f"{where}: subtask '{subtask.name}' reads '{name}'"
            if name not in names and name not in task.documents and name not in given:
                raise PackError(f"{problem}, which does not exist; {nearest(name, {*names, *task.documents, *given})}")
            if name not in available:
                cycle = " -> ".join(_cycle(task, subtask.name))
                why = f"the reads form a cycle: {cycle}" if cycle else f"'{name}' stands after it; change their order"
                raise PackError(f"{problem}, but {why}")
            if subtask.reads.count(name) > 1:
                raise PackError(f"{problem} twice; name it once")
        available.add(subtask.name)
    unread = set(task.documents) - {name for subtask in task.subtasks for name in subtask.reads}
    if unread:
        raise PackError(f"{where}: no subtask reads the document '{min(unread)}'; let one read it, or remove it")


def _cycle(task: Task, start: str) -> list[str]:
    """Return the names of the subtasks that read one another in a cycle from `start`; empty if there is none."""
    reads: Mapping[str, tuple[str, ...]] = {subtask.name: subtask.reads for subtask in task.subtasks}
    trail, seen = [[start]], {start}
    while trail:
        path = trail.pop()
        for read in reads.get(path[-1], ()):
            if read == start:
                return [*path, read]
            if read not in seen:
                seen.add(read)
                trail.append([*path, read])
    return []


def refuse_prompt(subtask: Subtask, task: Task, where: str, given: Sequence[str] = ()) -> None:
    """Raise PackError if a prompt names, in backticks, an input that its subtask does not read, or a missing document."""
    inputs = {*task.documents, *given} | {other.name for other in task.subtasks}
    names = set(re.findall(r"`([^`\n]+)`", subtask.instructions))
    foreign = (names & inputs) - set(subtask.reads) - {subtask.name}
    if foreign:
        problem = f"the prompt of '{subtask.name}' names `{min(foreign)}`, which it does not read"
        raise PackError(f"{where}: {problem}; add it to its reads, or take it out")
    suffixes = DOCUMENT_SUFFIXES | {PurePosixPath(name).suffix for name in task.documents} - {""}
    paths = (name for name in names - inputs if re.fullmatch(r"[\w.-]+(/[\w.-]+)*", name))
    missing = sorted(path for path in paths if PurePosixPath(path).suffix in suffixes)
    if missing:
        hint = nearest(missing[0], task.documents)
        problem = f"the prompt of '{subtask.name}' names `{missing[0]}`, which is not a document; {hint}"
        raise PackError(f"{where}: {problem} (write a file that is not a document without backticks)")
