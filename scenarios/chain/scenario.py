"""The stock of a warehouse through a number of sheets: one pipeline in several lengths, which differ in nothing but the length.

Every subtask has the same instructions, reads a sheet of the same size and the stock before it, and writes the stock after it.
"""

from __future__ import annotations

from pydantic import Field

from bench.run.packs import PackFolder
from bench.scenario import Context, Output, Scenario, Subtask

from .baseline import baseline
from .grader import grade
from .sheets import OPENING, sheet_name, subtask_names

VARIANTS = ("4", "8", "12", "16")  # how many subtasks


class Stock(Output):
    bolts: int = Field(ge=0)
    nuts: int = Field(ge=0)
    washers: int = Field(ge=0)
    pieces: int = Field(ge=0, description="the sum of the three")


def pieces_are_the_sum(output: Stock, _: Context) -> str | None:
    total = output.bolts + output.nuts + output.washers
    return None if output.pieces == total else f"pieces is {output.pieces}, but bolts, nuts and washers add up to {total}"


def scenario(folder: PackFolder) -> Scenario:
    # No subtask but the last is a checkpoint: with one on the way, what static runs again would grow with the distance to it
    # and not with the length of the whole.
    prompt, names = folder.prompt("step"), subtask_names(int(folder.variant))
    subtasks = [
        Subtask(
            name=name,
            instructions=prompt.format(before=before, sheet=sheet_name(number)),
            reads=(before, sheet_name(number)),
            output=Stock,
            checks=(pieces_are_the_sum,),
        )
        for number, (before, name) in enumerate(zip((OPENING, *names), names, strict=False), 1)
    ]
    # A shorter pipeline ends earlier: its sheets are the first ones of the longest, which lie there once.
    read = {name: text for name, text in folder.documents().items() if any(name in subtask.reads for subtask in subtasks)}
    return folder.scenario(subtasks, grade=grade, baseline=baseline, documents=read)
