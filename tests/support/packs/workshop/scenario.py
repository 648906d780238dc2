"""Write a function. For the tests: outputs that hold code beside what is none, in a list's items, and in a table of files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from bench.run.packs import PackFolder
from bench.scenario import Answer, Code, Context, Grade, Json, Output, Scenario, Subtask

FILES = {"add.py", "test_add.py"}
Python = Annotated[str, Code("python")]


class Draft(Output):
    plan: str = Field(description="one sentence")
    code: Python = Field(min_length=1, description="the whole function")


class Edit(BaseModel):
    line: int = Field(ge=1)
    replace: Python = Field(description="what stands there instead")


class Shipped(Output):
    edits: list[Edit] = Field(description="one for each line that changes")
    files: dict[str, Python] = Field(description="each file, whole")


class Note(Output):
    summary: str


def a_function_is_written(output: Draft, _: Context) -> str | None:
    return None if "def add" in output.code else "code defines no function add"


def every_file_is_there(output: Shipped, _: Context) -> str | None:
    return None if set(output.files) == FILES else f"files must be {' and '.join(sorted(FILES))}"


def grade(answer: Answer, truth: Path) -> Grade:
    right = (truth / "line.txt").read_text(encoding="utf-8").strip() in answer["ship"].files["add.py"]
    return Grade(right, float(right), {"code": float(right)}, "" if right else "it does not add")


def baseline(_: Mapping[str, str]) -> Mapping[str, Json]:
    files = dict.fromkeys(sorted(FILES), "pass")
    return {"draft": {"plan": "", "code": "def add(): ..."}, "ship": {"edits": [], "files": files}, "note": {"summary": ""}}


def scenario(folder: PackFolder) -> Scenario:
    subtasks = (
        Subtask("draft", folder.prompt("draft"), ("task.txt",), Draft, checks=(a_function_is_written,), checkpoint=True),
        Subtask("ship", folder.prompt("ship"), ("task.txt", "draft"), Shipped, checks=(every_file_is_there,)),
        Subtask("note", folder.prompt("note"), ("ship",), Note),
    )
    return folder.scenario(subtasks, grade=grade, baseline=baseline, secrets=("return a + b",))
