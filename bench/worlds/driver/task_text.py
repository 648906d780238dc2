"""The whole task, as a text: what an agent that is a process is told."""

from __future__ import annotations

from bench.scenario import Task

CLOSE = (
    "The events say what this work is about. Do it with the tools, from its start to its end. Time passes only while a tool"
    " lets it pass. The work is done when all that is to be done is done, and no event that is still to come asks for more."
    " Then stop."
)


def task_text(task: Task, work: str = "") -> str:
    """The work, or in its place the role of who judges; the documents, the judgments in the order in which they come, and that
    it is done with tools."""
    parts = [(work or task.role).strip()]
    parts += [f"# {name}\n{text.strip()}" for name, text in task.documents.items()]
    parts += [f"# {subtask.name}\n{subtask.instructions.strip()}" for subtask in task.subtasks]
    return "\n\n".join([*parts, f"# What to do\n{CLOSE}"])
