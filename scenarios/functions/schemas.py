"""The outputs of the subtasks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bench.scenario import Code, Output

Text = Annotated[str, Field(min_length=1)]


class Plan(Output):
    steps: list[Text] = Field(min_length=1, max_length=30, description="one sentence each")


class Function(Output):
    code: Annotated[str, Code("python")] = Field(min_length=1, description="the whole function, with its imports")
