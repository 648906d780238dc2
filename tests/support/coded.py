"""Outputs that hold code in every way in which an output may hold it, and subtasks that give them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from bench.scenario import Code, Output, Subtask

Python = Annotated[str, Code("python")]


class Edit(BaseModel):
    file: str
    find: Python = Field(description="the line as it stands")
    replace: Python


class Module(BaseModel):
    title: str
    body: Python


class Function(Output):
    """The commonest: one text of code beside what is no code."""

    plan: str
    code: Python = Field(description="the whole function")


class Patch(Output):
    edits: list[Edit]


class Everything(Output):
    plan: str
    code: Python
    test: Python | None = None
    files: dict[str, Python] = Field(default_factory=dict, description="each file, whole")
    edits: tuple[Edit, ...] = ()
    modules: dict[str, Module] = Field(default_factory=dict)
    inner: Module | None = None
    lines: tuple[Python, ...] = ()


class CodeAlone(Output):
    code: Python


class Files(Output):
    files: dict[str, Python]


class Nested(Output):
    """A type that holds itself."""

    code: Python
    below: tuple[Nested, ...] = ()


def subtask(name: str, output: type[Output]) -> Subtask:
    return Subtask(name, f"Do {name}.", (), output)


FUNCTION, PATCH, EVERYTHING = subtask("function", Function), subtask("patch", Patch), subtask("everything", Everything)
CODE_ALONE, FILES, NESTED = subtask("code_alone", CodeAlone), subtask("files", Files), subtask("nested", Nested)
