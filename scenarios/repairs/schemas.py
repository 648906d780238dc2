"""What each subtask writes."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from bench.scenario import Code, Output

Text = Annotated[str, Field(min_length=1)]


class Part(BaseModel):
    """A nested object of an output."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Bug(Part):
    file: Text
    line: Text = Field(description="the wrong line, copied as it stands")
    cause: Text = Field(description="what it does wrong, and what it must do")


class Diagnosis(Output):
    bugs: list[Bug] = Field(min_length=1, max_length=10, description="one for each wrong line")


class Edit(Part):
    file: Text
    find: Annotated[Text, Code("python")] = Field(description="whole line of the file, copied as it stands")
    replace: Annotated[str, Code("python")] = Field(description="what stands there instead")


class Fix(Output):
    edits: list[Edit] = Field(min_length=1, max_length=20)


class WholeFile(Part):
    file: Text
    text: Annotated[Text, Code("python")] = Field(description="the whole file, from its first line to its last")


class FileFix(Output):
    files: list[WholeFile] = Field(min_length=1, max_length=10)


class Review(Output):
    problems: list[str] = Field(description="what is still wrong, a sentence each; empty if nothing is")
    approved: bool = Field(description="true only if there is no problem")
