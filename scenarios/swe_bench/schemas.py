"""What each subtask writes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bench.scenario import Code, Output

Text = Annotated[str, Field(min_length=1)]


class Diagnosis(Output):
    file: Text = Field(description="the file in which the cause is, as it is named")
    cause: Text = Field(description="what is wrong there, and what must be changed")


class Patch(Output):
    patch: Annotated[Text, Code("diff")] = Field(description="a unified diff, with --- a/FILE, +++ b/FILE and @@ lines")
