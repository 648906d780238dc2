"""Make equivalents of a task: the same world with the same truth, described in another way. The level of an equivalent is the ε
of ReliabilityBench (arXiv 2601.06112), which asks how far an agent's success depends on the description of a task.

    0   the task as the pack has it
    1   other names, and the inputs in another order
    2   also other wordings of the instructions and of what people write

A pack declares its equivalents in `variants.py`: `VARIANTS = LEVELS`. The pack changes its own names and letters, with
`another`. `retold` makes the changes that are the same for all packs. Other wordings are written by hand:
`prompts/equivalents/<subtask>_<number>.md`, and `role_<number>.md` for the role. Every draw depends only on the instance and on
the thing that is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations
from typing import TypeVar

from bench.common.errors import PackError
from bench.common.seeding import draw_for
from bench.record.equivalents import REORDERED, REWORDED, level_of
from bench.run.packs.folder import PackFolder
from bench.scenario import Scenario, Subtask

EXAMPLES = "\n\nExamples:"
"""The heading in a prompt from which on the prompt is not reworded: a reworded example would be another example."""

T = TypeVar("T")


def another(choices: Iterable[T], than: T, *about: object) -> T:
    """Draw a choice other than `than`. The draw depends only on `about`, which names the instance and the thing that is
    chosen."""
    return draw_for("equivalent", *about).choice([choice for choice in choices if choice != than])


def retold(scenario: Scenario, folder: PackFolder) -> Scenario:
    """Return the scenario at the level of the folder's variant: with its inputs reordered, and from level 2 on with its
    instructions and role reworded. Raises PackError if no other wording exists."""
    level, task = level_of(folder.variant), scenario.task
    subtasks = task.subtasks
    if level >= REORDERED:
        subtasks = tuple(_reorder(subtask, folder) for subtask in subtasks)
    if level < REWORDED:
        return replace(scenario, task=replace(task, subtasks=subtasks))
    worded = tuple(replace(subtask, instructions=_reword(subtask.name, subtask.instructions, folder)) for subtask in subtasks)
    return replace(scenario, task=replace(task, role=_reword("role", task.role, folder), subtasks=worded))


def _reorder(subtask: Subtask, folder: PackFolder) -> Subtask:
    """Return the subtask with its inputs in another order, if it has several."""
    if len(subtask.reads) < 2:
        return subtask
    return replace(subtask, reads=another(permutations(subtask.reads), subtask.reads, folder.instance, "reads", subtask.name))


def _reword(name: str, text: str, folder: PackFolder) -> str:
    """Return a prompt in other words, up to its examples. Raises PackError if no other wording is written."""
    wordings = folder.path / "prompts" / "equivalents"
    names = sorted(path.stem for path in wordings.glob(f"{name}_[0-9]*.md"))
    if not names:
        raise PackError(f"{wordings / name}_1.md: is not there; write what the prompt says in other words")
    chosen = another(names, name, folder.instance, "wording", name)
    _, mark, examples = text.partition(EXAMPLES)
    return folder.prompt(f"equivalents/{chosen}") + mark + examples
