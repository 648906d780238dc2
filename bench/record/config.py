"""The form of a config in a manifest."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, WrapValidator

from bench.common.bounds import Lookup, Many
from bench.common.paths import LONGEST_NAME, NAME
from bench.record.architecture_entry import ArchitectureEntry
from bench.record.entry import MAX_ENTRIES, ConfigEntry, unless_stored
from bench.record.form import Repair
from bench.record.formats import DEFAULT, AnswerFormat
from bench.record.plan_entries import FaultEntry, PlanEntry

ARCHITECTURE = r"^[A-Za-z0-9_][A-Za-z0-9._:+-]{0,199}$"
"""An architecture's name, a variant's name, or `module:function`."""
Name = Annotated[str, Field(pattern=NAME), WrapValidator(unless_stored)]
ArchitectureName = Annotated[str, Field(pattern=ARCHITECTURE), WrapValidator(unless_stored)]
FAULT_FREE = "none"
"""The plan without faults: the control of all others."""


class BackOffEntry(ConfigEntry):
    """How calls that failed for a passing reason (429, 5xx, no connection, time-out, connection cut) are made again. This does
    not concern frameworks and agents of your own, which make their retries themselves."""

    tries: int = Field(6, ge=1)
    """Requests for one attempt, including the first."""
    base: float = Field(1.0, ge=0.0)
    """Seconds before the second request; doubled before each further one. A server's Retry-After replaces them."""
    most: float = Field(60.0, ge=0.0)
    """The longest wait before one request, in seconds, whatever the server asks for."""


class StoredConfig(ConfigEntry):
    """A config as a manifest stores it: without the tables of its models, whose parameters the manifest lists itself."""

    name: Name
    """The beginning of the run's folder name under results/."""
    scenarios: Many[Annotated[str, Field(max_length=LONGEST_NAME)]] = Field(min_length=1, max_length=MAX_ENTRIES)
    """The packs by name; `PACK:VARIANT` for a variant other than the pack's first."""
    architectures: Many[ArchitectureName] = Field(min_length=1, max_length=MAX_ENTRIES)
    """By name, as `bench list` shows them; as `module:function`, for one of your own; or a variant, `[architecture.NAME]`."""
    models: Many[Name] = Field(min_length=1, max_length=MAX_ENTRIES)
    """The models to run, each with its table `[model.NAME]`. `--model` replaces them."""
    plans: Many[Name] = Field((FAULT_FREE,), max_length=MAX_ENTRIES)
    """The fault plans to run, each with its table `[plan.NAME]`; `none` is the control."""
    repetitions: int = Field(ge=1, le=100_000)
    """How often each combination is run, each time with another seed."""
    instances: int | None = Field(None, ge=1, le=100_000)
    """How many of each pack's instances, drawn by `seed`; by default all. A smaller sample is part of a larger one.
    `PACK/INSTANCE` in `scenarios` names one instance."""
    seed: int
    """All draws and all seeds of requests are derived from it. Runs are compared only under the same seed."""
    max_attempts: int = Field(3, ge=1, le=MAX_ENTRIES)
    """Attempts at one subtask in one trial; after them the trial has given up."""
    repair: Repair = "reason"
    """What the next prompt tells of a rejection: nothing, the reason, or the reason and the rejected reply."""
    answer_format: AnswerFormat = DEFAULT
    """The form in which all architectures ask for answers: `json`, one JSON object asked for in words; `schema`, the same, and
    the endpoint holds the model to the schema; `fenced`, code in code blocks after the JSON."""
    study: str | None = None
    """A question beyond the paper that the report answers with a further table and figure; by default none."""
    deadline_seconds: float = Field(3600.0, gt=0.0)
    """The longest real time of a trial; after it the trial ends in an error."""
    back_off: BackOffEntry = BackOffEntry()
    """How failed calls are made again."""
    architecture: Lookup[Name, ArchitectureEntry] = Field(default_factory=dict, max_length=MAX_ENTRIES)
    """Variants of architectures, by name."""
    plan: Lookup[Name, PlanEntry] = Field(default_factory=dict, max_length=MAX_ENTRIES)
    """Fault plans, by name."""

    def names(self, column: str) -> tuple[str, ...]:
        """Return the scenarios, architectures, models or fault plans of the run, by the frames' name for them."""
        names: tuple[str, ...] = getattr(self, f"{column}s")
        return names

    def base(self, architecture: str) -> str:
        """Return the architecture that a variant varies; of any other, the architecture itself."""
        variant = self.architecture.get(architecture)
        return (variant and variant.base) or architecture

    def plans_on(self, scenario: str) -> tuple[str, ...]:
        """Return the fault plans that are run on a scenario, in the config's order."""
        pack = scenario.partition("/")[0].partition(":")[0]
        limits = {plan: self.plan[plan].scenarios if plan in self.plan else () for plan in self.plans}
        return tuple(plan for plan, only in limits.items() if not only or pack in only)

    def faults_of(self, plan: str) -> tuple[FaultEntry, ...]:
        """Return the faults of a plan; the control has none, and needs no table."""
        return self.plan.get(plan, PlanEntry()).faults
