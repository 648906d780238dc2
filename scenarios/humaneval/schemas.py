"""The outputs of the subtasks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bench.scenario import Code, Output

Text = Annotated[str, Field(min_length=1)]
Python = Annotated[str, Code("python"), Field(min_length=1, description="the whole function")]


class Plan(Output):
    steps: list[Text] = Field(min_length=1, description="what the function does, one short sentence for each step")


class Function(Output):
    code: Python


class Review(Output):
    is_right: bool = Field(description="false only if you found an input for which the result is wrong")
    problem: str = Field(description="that input, what comes out, and what should; empty if there is none")
