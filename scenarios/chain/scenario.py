"""A stock carried through a number of sheets: one pipeline in several lengths, of which nothing but the length differs.

Every subtask has the same instructions, reads a sheet of the same size and the stock before it, and writes the stock after it.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from bench.packs import PackFolder
from bench.scenario import Answer, Context, Grade, Json, Output, Scenario, Subtask

VARIANTS = ("4", "8", "12", "16")  # how many subtasks
ITEMS = ("bolts", "nuts", "washers")
OPENING, LAST = "opening.json", "closing"


class Stock(Output):
    bolts: int = Field(ge=0)
    nuts: int = Field(ge=0)
    washers: int = Field(ge=0)
    pieces: int = Field(ge=0, description="the sum of the three")


def subtask_names(length: int) -> list[str]:
    """The first and the last have the same names in every size, so that one fault plan strikes them in all."""
    return [*(f"step_{number}" for number in range(1, length)), LAST]


def sheet_name(number: int) -> str:
    return f"sheet_{number:02}.txt"


def pieces_are_the_sum(output: Stock, _: Context) -> str | None:
    total = output.bolts + output.nuts + output.washers
    return None if output.pieces == total else f"pieces is {output.pieces}, but bolts, nuts and washers add up to {total}"


def grade(answer: Answer, truth: Path) -> Grade:
    """Correct where the closing stock is: an error made on the way stands in it. The only code that reads the truth."""
    right: Mapping[str, int] = json.loads((truth / "stock.json").read_text(encoding="utf-8"))
    parts = {item: float(getattr(answer[LAST], item) == right[item]) for item in ITEMS}
    wrong = [item for item in ITEMS if not parts[item]]
    return Grade(not wrong, sum(parts.values()) / len(parts), parts, f"wrong: {', '.join(wrong)}" if wrong else "")


def baseline(documents: Mapping[str, str]) -> dict[str, Json]:
    """The first figure of each line goes out where the line begins with "Issued", else in: what was ordered as well."""
    stock = {item: json.loads(documents[OPENING])[item] for item in ITEMS}
    sheets = sorted(documents.keys() - {OPENING})
    outputs = {}
    for name, sheet in zip(subtask_names(len(sheets)), sheets, strict=True):
        for verb, figure, item in re.findall(r"^(\w+): (\d+) (\w+)", documents[sheet], re.MULTILINE):
            stock[item] += -int(figure) if verb == "Issued" else int(figure)
        outputs[name] = {**stock, "pieces": sum(stock.values())}
    return outputs


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
    whole = folder.scenario(subtasks, grade=grade, baseline=baseline, secrets=())
    # A shorter pipeline ends earlier: its sheets are the first ones of the longest, which lie there once.
    read = {name: text for name, text in whole.task.documents.items() if any(name in subtask.reads for subtask in subtasks)}
    return dataclasses.replace(whole, task=dataclasses.replace(whole.task, documents=read))
