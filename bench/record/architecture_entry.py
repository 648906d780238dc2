"""The form of a variant's table in a config: an architecture, or a command, with its own settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from bench.common.bounds import Lookup, Many
from bench.record.entry import MAX_ENTRIES, ConfigEntry
from bench.record.form import BARE, Approval, Commit, Form, Repair, Signal, Strength, UndoOrder

TIME_LIMIT = 300.0
"""Seconds for all lives of a command, by default."""
OF_A_COMMAND = {"command", "folder", "env", "files", "packages", "time_limit_seconds", "model_calls", "kills"}
Word = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]*$")]


class ArchitectureEntry(ConfigEntry):
    """A variant: the architecture `base` under its own name, with its own settings instead of the experiment's. Or a command of
    your own: an agent of any kind, in any language. It is started, killed as planned, and started again, and it runs on packs
    that have a world."""

    command: Many[Word] | None = Field(None, min_length=1, exclude_if=lambda command: command is None)
    """Instead of `base`: an agent of your own, as the words of a command, `["python", "my_agent.py"]`."""
    folder: Path | None = Field(None, exclude_if=lambda folder: folder is None)
    """The folder of the files that the command names; by default the current folder."""
    env: Lookup[str, str] = Field(default_factory=dict, exclude_if=lambda env: not env)
    """Variables for the command's environment, beside those that every agent gets. They stand in the record: put no secret
    here."""
    files: Many[Path] = Field((), exclude_if=lambda files: not files)
    """Files beside those that the command names, such as a module that it imports: their content is part of the variant's
    identity. They lie in the same folder."""
    packages: Many[str] = Field((), exclude_if=lambda packages: not packages)
    """Python packages that it needs: their installed versions stand in the manifest and are part of the variant's identity."""
    time_limit_seconds: float | None = Field(None, gt=0.0, exclude_if=lambda seconds: seconds is None)
    """How long all lives of the command in one trial can take together, in real seconds; by default 300. After that it counts
    as having given up."""
    model_calls: int | None = Field(None, ge=1, exclude_if=lambda calls: calls is None)
    """How many calls of the model all lives of the command in one trial can make together; by default any number. After that it
    counts as having given up. Unlike seconds, this bound is the same on every machine."""
    kills: Literal["caller"] | None = Field(None, exclude_if=lambda kills: kills is None)
    """`caller`: a planned kill ends only that process of the command which made the call, and the others go on (on Linux;
    elsewhere all die). By default it ends the whole command, which is started again."""
    base: str = ""
    """An architecture's name, or `module:function`."""
    max_attempts: int | None = Field(None, ge=1, le=MAX_ENTRIES)
    """This variant's, instead of the experiment's."""
    repair: Repair | None = None
    """This variant's, instead of the experiment's."""
    parallel: bool = Field(False, exclude_if=lambda parallel: not parallel)
    """Whether subtasks whose inputs are there are asked at the same time. `static` and `runtime_structured` have such a form,
    and so does a function of yours that takes `parallel`."""
    policy: Path | None = Field(None, exclude_if=lambda policy: policy is None)
    """A file from `bench more learn`, for `learned_policy` and for a function of yours that takes `policy`. Its content is part
    of the variant's identity, and no instance on which it was learned is run."""
    remedies: bool = Field(False, exclude_if=lambda remedies: not remedies)
    """In a world: whether a pattern has its author's remedies. Else it runs bare."""
    strength: Strength | None = Field(None, exclude_if=lambda strength: strength is None)
    """In a world: what a proposal must pass, each level with all before it: `none`, `schema`, `policy`, `business_rule`. By
    default `business_rule` with remedies, and `schema` without."""
    commit: Commit | None = Field(None, exclude_if=lambda commit: commit is None)
    """In a world: how a pattern makes an effect: `plain`, `idempotent` (under a key made from its business key), or
    `compare_and_swap` (also only on the versions that it was decided on). By default the last with remedies, and the first
    without."""
    signal: Signal | None = Field(None, exclude_if=lambda signal: signal is None)
    """In a world: what the proposer hears of a rejection: `typed`, the reason; `untyped`, only the rejection; `as_success`,
    that all went well. By default `typed`."""
    approval: Approval | None = Field(None, exclude_if=lambda approval: approval is None)
    """In a world: before which effects a pattern asks: `never` before any; `risky`, a person before those for which the policy
    wants one; `always`, also the built-in reviewer before those that the policy allows. What the policy denies is denied in
    each case. By default `risky` with remedies, and the pattern's own rule without."""
    deadline_minutes: int | None = Field(None, ge=1, exclude_if=lambda minutes: minutes is None)
    """In a world: how many minutes of its time a pattern waits for a read before it gives the read up and makes it again. By
    default it waits as long as the read takes."""
    catches_up: bool = Field(False, exclude_if=lambda catches_up: not catches_up)
    """In a world: whether a pattern asks, before it begins a step, for events of which no notice came."""
    children: int | None = Field(None, ge=2, le=MAX_ENTRIES, exclude_if=lambda children: children is None)
    """In a world: how many children make each judgment of a pattern. If they disagree, the last word holds; with remedies the
    first child's, which has priority. By default one makes it."""

    pins: bool = Field(False, exclude_if=lambda pins: not pins)
    """In a world: whether a pattern keeps each decision with the version of the model that made it. Then no model is asked
    again in the same state, whichever continues after a crash. With remedies it keeps the decisions of the steps that it has
    begun."""

    undo_order: UndoOrder | None = Field(None, exclude_if=lambda order: order is None)
    """In a world: in which order a pattern takes back the effects of a saga that failed: `reverse`, or `as_done`, the order in
    which they were made. If not given, `reverse`."""

    @model_validator(mode="after")
    def _base_or_command(self) -> ArchitectureEntry:
        """Check that the entry has either a base or a command, and no setting that belongs to the other kind."""
        given = {name for name in self.model_fields_set if getattr(self, name)}
        if not self.command and given & OF_A_COMMAND:
            problem = "folder, env, files, packages, time_limit_seconds, model_calls and kills are those of a command"
            raise ValueError(f"{problem}; name the command, or leave them out")
        if bool(self.base) == bool(self.command):
            raise ValueError("give either a base, which is the architecture that this is a variant of, or a command")
        if self.command and (others := given - OF_A_COMMAND):
            raise ValueError(f"{min(others)} is not a setting of a command; leave it out")
        return self

    @property
    def form(self) -> Form | None:
        """The form that the variant asks for; None if it asks for none."""
        boundary = (self.strength, self.commit, self.signal)
        form = Form(
            self.remedies,
            *boundary,
            approval=self.approval,
            deadline=self.deadline_minutes,
            catches_up=self.catches_up,
            children=self.children,
            pins=self.pins,
            undo_order=self.undo_order,
        )
        return None if form == BARE else form
