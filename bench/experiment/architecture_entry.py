"""A variant's table in a config: an architecture, or a command, with settings of its own."""

from __future__ import annotations

from pydantic import Field, model_validator

from bench.architectures.parts.form import BARE, Commit, Form, Signal, Strength
from bench.experiment.command_entry import CommandEntry
from bench.experiment.entry import MOST
from bench.runtime.prompt import Repair


class ArchitectureEntry(CommandEntry):
    """A variant: the architecture `base` under a name of its own, with settings of its own in the experiment's place; or a
    command, which is one of your own."""

    base: str = ""
    """An architecture's name, or `module:function`."""
    max_attempts: int | None = Field(None, ge=1, le=MOST)
    """This variant's, in place of the experiment's."""
    repair: Repair | None = None
    """This variant's, in place of the experiment's."""
    parallel: bool = Field(False, exclude_if=lambda parallel: not parallel)
    """Whether subtasks whose inputs are there are asked at the same time. `static` and `runtime_structured` have such a form,
    and so has a function of your own that takes `parallel`."""
    remedies: bool = Field(False, exclude_if=lambda remedies: not remedies)
    """In a world: whether a pattern has its author's remedies. Else it runs bare."""
    strength: Strength | None = Field(None, exclude_if=lambda strength: strength is None)
    """In a world: what a pattern holds against a proposal, each with all before it: `none`, `schema`, `policy`,
    `business_rule`. If not given, `business_rule` with remedies, and `schema` without."""
    commit: Commit | None = Field(None, exclude_if=lambda commit: commit is None)
    """In a world: how a pattern makes an effect: `plain`, `idempotent` (under a key made of its business key), or
    `compare_and_swap` (that, and on the versions alone that it was decided on). If not given, the last with remedies, and the
    first without."""
    signal: Signal | None = Field(None, exclude_if=lambda signal: signal is None)
    """In a world: what the proposer hears of a rejection: `typed`, why; `untyped`, that; `as_success`, that all went well. If
    not given, `typed`."""

    @model_validator(mode="after")
    def _base_or_command(self) -> ArchitectureEntry:
        if bool(self.base) == bool(self.command):
            raise ValueError("give a base, the architecture that this is a variant of, or a command; one of the two")
        own = {name for name in ArchitectureEntry.model_fields if name not in CommandEntry.model_fields and name != "base"}
        given = {name for name in own & self.model_fields_set if getattr(self, name) not in (None, False)}
        if self.command and given:
            raise ValueError(f"{min(given)} is none of a command's; leave it out")
        return self

    @property
    def form(self) -> Form | None:
        """The form that it asks for; None where it asks for none."""
        form = Form(self.remedies, self.strength, self.commit, self.signal)
        return None if form == BARE else form
