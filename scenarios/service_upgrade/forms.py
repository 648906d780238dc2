"""What the tools take and return. What is returned is shown to judgments as it is: it holds no number of a row and no time."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

Rewrite = Literal["a", "b", "c", "d"]
Risk = Literal["low", "high"]


class Everything(BaseModel):
    pass


class OfBranch(BaseModel):
    branch: str


class OfModule(BaseModel):
    module: str


class OfTree(BaseModel):
    tree: str


class Service(BaseModel):
    service: str
    library: str
    version: str
    next_version: str
    branch: str = Field(description="the name of the branch on which the upgrade is made")
    modules: list[str]


class Changes(BaseModel):
    changes: list[str]


class RewriteOffered(BaseModel):
    rewrite: Rewrite
    line: str


class ModuleText(BaseModel):
    module: str
    library: str
    text: str
    line: str
    rewrites: list[RewriteOffered]


class Refs(BaseModel):
    """`base`: the tree of main from which the branch was made, or onto which it was rebased."""

    main: str
    head: str
    base: str


class Diff(BaseModel):
    lines: list[str]


class TestRun(BaseModel):
    run: int
    failed: list[str]


class CheckResults(BaseModel):
    """None where it was not run."""

    tests: list[TestRun]
    lint: list[str] | None
    instance: list[str] | None
    rebased: bool


class Metrics(BaseModel):
    requests: int
    failed: int


class Rewriting(OfModule):
    branch: str
    rewrite: Rewrite


class Onto(OfBranch):
    main: str


class Testing(OfTree):
    run: int = Field(ge=1, le=3, description="1, and 2 where the first failed")


class Merging(OfTree):
    risk: Risk


class Share(OfTree):
    percent: int = Field(ge=1, le=100, description="of the traffic")


class Failed(BaseModel):
    failed: list[str]


class Moved(BaseModel):
    tree: str


class Done(BaseModel):
    done: bool = True
