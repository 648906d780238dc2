"""The outputs of the four subtasks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from bench.scenario import Output

File = Literal["pipeline.py", "validator.py"]
Text = Annotated[str, Field(min_length=1)]


class Part(BaseModel):
    """A nested object of an output."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Bug(Part):
    file: File
    line_text: Text = Field(description="the faulty line, copied exactly")
    cause: Text = Field(description="what is wrong with it, then the whole line as it must read")


class Analysis(Output):
    needs_fix: bool
    bugs: list[Bug] = Field(description="one for each wrong line, in the order in which they take effect")
    confidence: float = Field(ge=0, le=1)


class Edit(Part):
    file: File
    find: Text = Field(description="existing whole line, copied exactly")
    replace: str = Field(description="what stands there instead")


class FixGeneration(Output):
    edits: list[Edit]


class Verdict(Part):
    bug: int = Field(description="number of the bug in the analysis, from 1")
    fixed: bool


class Validation(Output):
    verdicts: list[Verdict] = Field(description="one for each bug of the analysis")
    problems: list[str] = Field(description="what is still wrong; empty if nothing is")
    approved: bool = Field(description="true only if every bug is fixed and there is no problem")


class Synthesis(Output):
    summary: Text = Field(description="two sentences")
    root_cause: Text
    files_changed: list[File]
