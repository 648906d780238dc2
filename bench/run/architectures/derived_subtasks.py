"""The architecture `derived_subtasks`: a model splits the task into parts, which are added as subtasks. A last call writes the
answer from the notes on all parts.

Developers write the decompositions of the paper, which names derived decompositions as untried. Here the model decides which
parts there are, what each part's instructions and inputs are, and from which documents the answer is written. Each output is
verified before another subtask reads it. A rejected output is asked for again alone, with the reason, as in
`runtime_structured`. A derived part has none of the pack's checks: its verifier sees whether there are notes, but not whether
they are right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace

from pydantic import Field

from bench.run.architectures.waves import by_needs
from bench.run.trial.workbench import Workbench
from bench.scenario import Context, Output, Subtask, Task

SPLIT = "Split"
"""The name of the subtask that splits the task. No other subtask can have this name, since theirs begin with a small letter."""
MAX_PARTS = 8
INSTRUCTIONS = (
    "Split the task below into smaller parts; they are carried out later. Whoever carries a part out sees its instructions and"
    " what it reads, and nothing else, and writes notes. The answer is then written from all notes, and from the documents that"
    f" you name for it. Make at most {MAX_PARTS} parts."
)


class PartPlan(Output):
    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$", description="small letters, digits and _")
    instructions: str = Field(min_length=1, description="what is to be done and noted down")
    reads: list[str] = Field(description="names of documents, and of parts whose notes it needs")


class Split(Output):
    parts: list[PartPlan] = Field(min_length=1, description="in any order")
    answer_reads: list[str] = Field(description="names of the documents that the answer is written from")

    @property
    def needs(self) -> Mapping[str, Collection[str]]:
        return {part.name: part.reads for part in self.parts}


class Notes(Output):
    notes: str = Field(min_length=1, description="all that the answer needs of this part")


async def derived_subtasks(task: Task, workbench: Workbench) -> None:
    """Ask for a split, for the notes on its parts in waves, and then for the answer."""
    splitter = splitter_of(task)
    workbench.add(splitter, reference=split_of(task).model_dump(mode="json"))
    split = await _split(workbench, splitter)
    for wave in by_needs([_subtask_of(part) for part in split.parts], split.needs):
        for part in wave:
            workbench.add(part)
        await asyncio.gather(*(_until_accepted(workbench, part, planned_by=splitter) for part in wave))
    await _until_accepted(workbench, *_answer_subtasks(task, split), planned_by=splitter)


async def _split(workbench: Workbench, splitter: Subtask) -> Split:
    """Ask for a split until it is valid, and return it as the state holds it, so that faults in the state are noticed too."""
    rejected = None
    while True:
        workbench.commit_unverified(await workbench.propose(splitter, repair=rejected))
        rejected = workbench.checkpoint([splitter])
        split = workbench.output(splitter)
        if not rejected and isinstance(split, Split):
            return split


async def _until_accepted(workbench: Workbench, *subtasks: Subtask, planned_by: Subtask) -> None:
    """Ask for the outputs of these subtasks until they are accepted, and commit them."""
    proposal = await workbench.propose(*subtasks, planned_by=planned_by)
    while rejected := workbench.verify(proposal, sufficiency=True):
        proposal = await workbench.propose(*subtasks, repair=rejected, planned_by=planned_by)
    workbench.commit(proposal)


def _subtask_of(part: PartPlan) -> Subtask:
    """Return the subtask that makes the notes on a part."""
    return Subtask(part.name, part.instructions, tuple(dict.fromkeys(part.reads)), Notes)


def _answer_subtasks(task: Task, split: Split) -> list[Subtask]:
    """Return the task's subtasks for one call that reads the notes and the documents that the split names."""
    names = {subtask.name for subtask in task.subtasks}
    outputs = dict.fromkeys((*split.answer_reads, *(part.name for part in split.parts)))
    return [replace(subtask, reads=(*(name for name in subtask.reads if name in names), *outputs)) for subtask in task.subtasks]


def splitter_of(task: Task) -> Subtask:
    """Return the subtask that asks for a split of this task. Its prompt has the instructions of all subtasks and the names of
    the documents, without their texts."""

    def can_be_carried_out(split: Split, _: Context) -> str | None:
        """Return why the split cannot be carried out; None if it can."""
        return _wrong_parts(task, split) or _wrong_reads(task, split)

    documents = [f"- {name}, {len(text.splitlines())} lines" for name, text in task.documents.items()]
    outputs = [f"# Output: {subtask.name}\n{subtask.instructions}" for subtask in task.subtasks]
    task_text = "\n".join((INSTRUCTIONS, "", "Documents:", *documents))
    return Subtask(SPLIT, "\n\n".join((task_text, *outputs)), (), Split, checks=(can_be_carried_out,))


def split_of(task: Task) -> Split:
    """Return the split that a simulated model answers with: a part for each subtask of the pack, and an answer from the notes
    alone."""
    notes = {subtask.name: f"{subtask.name}_notes" for subtask in task.subtasks}
    parts = [
        PartPlan(
            name=notes[subtask.name], instructions=subtask.instructions, reads=[notes.get(name, name) for name in subtask.reads]
        )
        for subtask in task.subtasks[:MAX_PARTS]
    ]
    return Split(parts=parts, answer_reads=[])


def _wrong_parts(task: Task, split: Split) -> str | None:
    """Return what is wrong with the names and the number of the parts; None if nothing is."""
    names = [part.name for part in split.parts]
    if len(names) > MAX_PARTS:
        return f"there are {len(names)} parts; make at most {MAX_PARTS}"
    task_names = {*task.documents, *(subtask.name for subtask in task.subtasks)}
    for name in names:
        if name in task_names:
            return f"the name '{name}' is that of a document or of an output; give the part another"
        if names.count(name) > 1:
            return f"{names.count(name)} parts are named '{name}'; give each a name of its own"
    return None


def _wrong_reads(task: Task, split: Split) -> str | None:
    """Return what is wrong with the names that the parts and the answer read; None if nothing is."""
    documents, names = list(task.documents), [part.name for part in split.parts]
    for reader, reads, available in [
        *((f"part '{part.name}'", part.reads, [*documents, *names]) for part in split.parts),
        ("the answer", split.answer_reads, documents),
    ]:
        for name in reads:
            if name not in available:
                return f"{reader} reads '{name}', which does not exist; it can read {', '.join(available)}"
    try:
        by_needs([_subtask_of(part) for part in split.parts], split.needs)
    except ValueError as error:
        return str(error)
    return None
