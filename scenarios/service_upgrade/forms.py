"""What the tools take and return. What is returned is shown to judgments as it is: it holds no number of a row and no time."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field, JsonValue

from .written import LONGEST_LINE, LONGEST_TEST

Rewrite = Literal["a", "b", "c", "d"]
Risk = Literal["low", "high"]
Label = Literal["regression", "flaky"]


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


class CommitShown(BaseModel):
    """`tests`: each run of them on the tree of this commit."""

    commit: int
    author: str
    edits: str
    tree: str
    tests: list[TestRun]


class Log(BaseModel):
    """The first is the oldest."""

    commits: list[CommitShown]


class TestOffered(BaseModel):
    """It asserts that `answer(rows, order) == expects`."""

    test: Rewrite
    order: int
    expects: JsonValue


class Mistake(BaseModel):
    """`present`: the module on main. `mended`: the module on the branch `fix`."""

    module: str
    library: str
    present: str
    mended: str
    orders: list[dict[str, str | int]]
    tests: list[TestOffered]


class Metrics(BaseModel):
    requests: int
    failed: int


class Rewriting(OfModule):
    branch: str
    rewrite: Rewrite


class WritingLine(OfModule):
    """`rewrite`: the line."""

    branch: str
    rewrite: str = Field(max_length=LONGEST_LINE)


class Onto(OfBranch):
    main: str


class Testing(OfTree):
    run: int = Field(ge=1, le=3, description="1, and 2 where the first failed")


class Merging(OfTree):
    risk: Risk


class Labelling(BaseModel):
    label: Label


class Assigning(BaseModel):
    person: str


class AddingTest(OfModule):
    branch: str
    test: Rewrite


class AddingWritten(OfModule):
    """`test`: its asserts, one a line."""

    branch: str
    test: str = Field(max_length=LONGEST_TEST)


class PullRequest(OfTree):
    branch: str
    modules: list[str] = Field(description="the modules that it changes")
    risk: Risk


class Share(OfTree):
    percent: int = Field(ge=1, le=100, description="of the traffic")


class Failed(BaseModel):
    failed: list[str]


class Moved(BaseModel):
    tree: str


class TestAdded(Moved):
    """`tree`: the branch with the test. `fixed`: what is right, with the same test."""

    fixed: str


class Done(BaseModel):
    done: bool = True
