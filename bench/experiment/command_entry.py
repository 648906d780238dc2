"""The part of a variant's table that makes it a command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from bench.bounds import Lookup, Many
from bench.experiment.entry import Entry

TIME_LIMIT = 300.0
"""Seconds."""
Word = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]*$")]


class CommandEntry(Entry):
    """An agent of any kind, in any language, in the place of an architecture: it is started, killed as planned, and started
    again. It runs on packs that have a world."""

    command: Many[Word] | None = Field(None, min_length=1, exclude_if=lambda command: command is None)
    """In the place of `base`: an agent of your own, as the words of a command, `["python", "my_agent.py"]`."""
    folder: Path | None = Field(None, exclude_if=lambda folder: folder is None)
    """Where the files that the command names lie; the current folder, if not given."""
    env: Lookup[str, str] = Field(default_factory=dict, exclude_if=lambda env: not env)
    """Variables that the command finds in its environment, beside those that every agent is given. They stand in the record:
    put no secret here."""
    files: Many[Path] = Field((), exclude_if=lambda files: not files)
    """Files beside those that the command names, such as a module that it imports: what stands in them is part of what it is.
    They lie where those lie."""
    packages: Many[str] = Field((), exclude_if=lambda packages: not packages)
    """Packages of Python that it stands on: their installed versions stand in the manifest and are part of what it is."""
    time_limit_seconds: float | None = Field(None, gt=0.0, exclude_if=lambda seconds: seconds is None)
    """How long all lives of the command in one trial may take together, in real seconds; 300, if not given. Then it has given
    up."""
    model_calls: int | None = Field(None, ge=1, exclude_if=lambda calls: calls is None)
    """How many calls of the model all lives of the command in one trial may make together; any number, if not given. Then it
    has given up. Unlike seconds it is the same bound on every machine."""

    @model_validator(mode="after")
    def _only_of_a_command(self) -> CommandEntry:
        own = (self.folder, self.env, self.files, self.packages, self.time_limit_seconds, self.model_calls)
        if self.command is None and any(own):
            said = "folder, env, files, packages, time_limit_seconds and model_calls are those of a command"
            raise ValueError(f"{said}; name the command, or leave them out")
        return self
