"""A task for each row of rows.jsonl: quote the words that decide, then answer."""

from __future__ import annotations

from bench.run.packs import PackFolder
from bench.scenario import Context, Scenario, Subtask

from .baseline import baseline
from .grader import grade
from .rows import ROW, document, read_rows, reference, wrong_answers
from .schemas import Answer, Evidence

SHORTEST_QUOTE = 8
"""The fewest characters of a quotation. A shorter quotation could be found in any row."""


def quote_stands_in_the_row(output: Evidence, context: Context) -> str | None:
    """Return why an output is rejected, in one line that a model may be shown; None if it passes.

    A check can read the documents, and never the truth.
    """
    quote, text = " ".join(output.quote.split()), " ".join(context.documents[ROW].split())
    if len(quote) < min(SHORTEST_QUOTE, len(text)):
        return f"the quotation '{quote}' is too short to tell where it stands; copy more"
    return None if quote in text else f"'{quote[:80]}' does not stand in {ROW}; copy it as it stands there"


def instances(folder: PackFolder) -> tuple[str, ...]:
    """Return the names of the pack's tasks."""
    return tuple(row["id"] for row in read_rows(folder.path))


def scenario(folder: PackFolder, instance: str) -> Scenario:
    """Return the task of one row."""
    rows = read_rows(folder.path)
    row = next(row for row in rows if row["id"] == instance)
    subtasks = (
        Subtask(
            name="evidence",
            instructions=folder.prompt("evidence"),
            reads=(ROW,),
            output=Evidence,
            checks=(quote_stands_in_the_row,),
            checkpoint=True,  # the architecture `static` verifies here, and after the last subtask
        ),
        Subtask(
            name="answer",
            instructions=folder.prompt("answer"),
            reads=(ROW, "evidence"),
            output=Answer,  # add checks=(...) for what is never right
        ),
    )
    return folder.scenario(
        subtasks,
        grade=grade,
        baseline=baseline,
        answer=("answer",),  # the quotation is verified, and not graded
        documents={ROW: document(row)},
        reference=reference(row),
        wrong=wrong_answers(row, rows),
        truth=row["expected"],
    )
