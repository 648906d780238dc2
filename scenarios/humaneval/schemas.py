"""The outputs of the subtasks."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from bench.scenario import Code, Output

Text = Annotated[str, Field(min_length=1)]
Python = Annotated[str, Code("python"), Field(min_length=1, description="the whole function")]


class Plan(Output):
    steps: list[Text] = Field(min_length=1, description="what the function does, one short sentence for each step")


class Function(Output):
    code: Python


def empty_if_null(value: object) -> object:
    """Small models write null where there is no problem; to turn that away would measure form and no architecture."""
    return "" if value is None else value


class Review(Output):
    is_right: bool = Field(description="false only if you found an input for which the result is wrong")
    problem: Annotated[str, BeforeValidator(empty_if_null)] = Field(
        description="that input, what comes out, and what should; empty if there is none"
    )
