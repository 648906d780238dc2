"""Write the whole task as one text, for an agent that is a process."""

from __future__ import annotations

from bench.scenario import Task

CLOSING_WORDS = (
    "The events say what this work is about. Do it with the tools, from its start to its end. Time passes only while a tool"
    " lets it pass. The work is done when all that is to be done is done, and no event that is still to come asks for more."
    " Then stop."
)


def task_text(task: Task, work: str = "") -> str:
    """Return one text with the work (or the task's role if `work` is ""), the documents, the judgments in order, and the
    closing words."""
    parts = [(work or task.role).strip()]
    parts += [f"# {name}\n{text.strip()}" for name, text in task.documents.items()]
    parts += [f"# {subtask.name}\n{subtask.instructions.strip()}" for subtask in task.subtasks]
    return "\n\n".join([*parts, f"# What to do\n{CLOSING_WORDS}"])
