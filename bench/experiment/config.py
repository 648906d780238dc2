"""What a person writes: an experiment's config in TOML, read and refused here. `configs/smoke.toml` is a short example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from bench.answers.formats import DEFAULT, AnswerFormat
from bench.architectures.parts.form import BARE, Commit, Form, Signal, Strength
from bench.errors import ConfigError, nearest
from bench.experiment.command_entry import COMMAND, CommandEntry
from bench.experiment.world_plans import in_world
from bench.models.openai_settings import OpenAISettings
from bench.models.routed import RoutedSettings
from bench.models.simulated import SimulatedSettings
from bench.paths import NAME
from bench.runtime.effects import EFFECTS, Point
from bench.runtime.faults import EVERY, Fault, FaultPlan
from bench.runtime.prompt import Repair
from bench.runtime.world_effects import WORLD_EFFECTS, WORLD_POINTS, points_of
from bench.scenario import Scenario
from bench.toml import read_toml
from bench.wording import violations

ARCHITECTURE = r"^[A-Za-z0-9_][A-Za-z0-9._:+-]{0,199}$"
"""Of one of the table's, of a variant, or `module:function`."""
Name = Annotated[str, Field(pattern=NAME)]
FAULT_FREE = "none"
"""The plan without faults: the control of every other."""
RENAMED = {"experiment": "study"}
"""Keys that earlier configs have -> what they are called now."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Asked(_Strict):
    """What every model's entry may say."""

    answer_format: AnswerFormat | None = None
    """In which form this model is asked to answer, in place of the experiment's: so one config can hold a model in several."""


class SimulatedEntry(SimulatedSettings, Asked):
    kind: Literal["simulated"]


class OpenAIEntry(OpenAISettings, Asked):
    kind: Literal["openai"]


class RecordedEntry(Asked):
    """A model of a recorded run: each request is answered from that run's log. `--model recorded:RUN` needs no such table."""

    kind: Literal["recorded"]
    run: Path
    """The run's folder."""
    model: str | None = None
    """The model's name in that run; by default its name here."""
    price_in: float | None = Field(None, ge=0.0)
    """Dollars per million tokens read, in place of the recorded price."""
    price_out: float | None = Field(None, ge=0.0)
    """Dollars per million tokens written, in place of the recorded price."""
    concurrency: int | None = Field(None, ge=1)
    """How many calls at a time are taken here, in place of as many as in that run. Seconds are then as if each of so many
    calls took as long as it took there, and the model's label says so."""


class RoutedEntry(RoutedSettings, Asked):
    kind: Literal["routed"]


ModelEntry = Annotated[SimulatedEntry | OpenAIEntry | RecordedEntry | RoutedEntry, Field(discriminator="kind")]


def _attempts(given: object) -> object:
    numbers = isinstance(given, list | tuple) and all(isinstance(one, int) and one > 0 for one in given)
    if given != "every" and not numbers:
        raise ValueError(f'must be a list of attempts, counted from 1, or "every", not {given!r}')
    return given


Attempts = Annotated[tuple[int, ...] | Literal["every"], BeforeValidator(_attempts)]
Position = Literal["first", "middle", "last"]


class FaultEntry(_Strict):
    """One fault of a plan. It has one trigger: either `attempts` or `probability`."""

    point: Point
    """Where it strikes: in a reply, in what a subtask reads, in what is written to the state, or at the call itself."""
    effect: str
    """What it does there; `bench list` shows each effect with the points at which it can strike."""
    subtask: str | dict[str, str] = EVERY
    """Whom it strikes: a subtask's name, `*` for every subtask, or a table with one name for each scenario."""
    position: Position | None = Field(None, exclude_if=lambda position: position is None)
    """In the place of `subtask`: whom it strikes by its place in the order in which the task lists its subtasks. The middle one
    of an even number is the earlier of the two."""
    tool: str | dict[str, str] | None = Field(None, exclude_if=lambda tool: tool is None)
    """At `tool` and `process`, in the place of `subtask`: the tool whose calls it strikes, `*` for every tool, or a table with
    one name for each scenario."""
    event: str | dict[str, str] | None = Field(None, exclude_if=lambda event: event is None)
    """At `event`, in the place of `subtask`: the kind of event that it strikes, given as `tool` is."""
    attempts: Attempts = ()
    """The attempts at the subtask that it strikes, counted from 1; `every`, for a persistent fault, which never wears off: at
    `call` it strikes every request of every attempt, so that where it makes the call fail all tries fail and the trial gives
    up. Of several samples of an attempt only the first is struck."""
    probability: float = Field(0.0, ge=0.0, le=1.0)
    """The chance with which it strikes each attempt."""
    seconds: float = Field(1.0, ge=0.0)
    """For `slow`: how much later the reply comes. For `timeout`: how long nothing comes. For `rate_limit`: what Retry-After
    says. No other effect reads it."""
    minutes: int = Field(0, ge=0, exclude_if=lambda minutes: not minutes)
    """In a world's time. For `slow` at a tool: how much later it is called, an hour if not given. For `late`: how much later
    the agent hears of the event, a day if not given. No other effect reads it."""

    @model_validator(mode="after")
    def _known(self) -> FaultEntry:
        points = points_of(self.effect)
        if not points:
            raise ValueError(f"unknown effect '{self.effect}'; {nearest(self.effect, (*EFFECTS, *WORLD_EFFECTS))}")
        if self.point not in points:
            raise ValueError(f"effect '{self.effect}' cannot strike at '{self.point}', only at {', '.join(sorted(points))}")
        if bool(self.attempts) == bool(self.probability):
            raise ValueError('a fault has one trigger: either attempts = [1, ...] or "every", or a probability above 0')
        if self.position and self.subtask != EVERY:
            raise ValueError("a fault strikes a subtask or a position: give one of the two")
        if self.effect == "mid_stream" and self.tool is not None:
            raise ValueError("mid_stream strikes no tool; its attempts count the replies of the model in a trial")
        if self.target_key != "subtask" and (self.subtask != EVERY or self.position):
            raise ValueError(f"at '{self.point}' a fault strikes no subtask; name the {self.target_key}")
        for key in {"tool", "event"} - {self.target_key}:
            if getattr(self, key) is not None:
                raise ValueError(f"at '{self.point}' a fault strikes no {key}; name the {self.target_key}")
        return self

    @property
    def target_key(self) -> str:
        """Which key names what it strikes."""
        if self.point in ("tool", "process"):
            return "tool"
        return "event" if self.point == "event" else "subtask"


class PlanEntry(_Strict):
    """A fault plan. The plan `none` needs no table: it is the control."""

    faults: tuple[FaultEntry, ...] = ()
    """Its faults. A text carries one fault: where several are due for the same text, the first of the plan strikes."""


class ArchitectureEntry(CommandEntry):
    """A variant: the architecture `base` under a name of its own, with settings of its own in the experiment's place; or a
    command, which is one of your own."""

    base: str = ""
    """An architecture's name, or `module:function`."""
    max_attempts: int | None = Field(None, ge=1)
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


class BackOffEntry(_Strict):
    """How calls that failed for a passing reason (429, 5xx, no connection, time-out, connection cut) are made again. A
    framework and an agent of your own make their retries themselves: this does not concern them."""

    tries: int = Field(6, ge=1)
    """Requests for one attempt, the first among them."""
    base: float = Field(1.0, ge=0.0)
    """Seconds before the second request; doubled before each further one. A server's Retry-After takes their place."""
    most: float = Field(60.0, ge=0.0)
    """The longest that is waited before one request, in seconds, whatever the server asked for."""


class Config(_Strict):
    """One experiment: every scenario x architecture x model x fault plan, `repetitions` times. `study` names the
    question that its report answers with a table and a figure more: whoever loads a config refuses one that does not exist."""

    name: Name
    """The run's folder under results/ begins with it."""
    scenarios: tuple[str, ...] = Field(min_length=1)
    """The packs by name; `PACK:VARIANT` for a variant that is not the pack's first."""
    architectures: tuple[Annotated[str, Field(pattern=ARCHITECTURE)], ...] = Field(min_length=1)
    """By name, as `bench list` shows them; as `module:function`, for one of your own; or a variant, `[architecture.NAME]`."""
    models: tuple[Name, ...] = Field(min_length=1)
    """The models that are run, each with its table `[model.NAME]`. `--model` takes their place."""
    plans: tuple[Name, ...] = (FAULT_FREE,)
    """The fault plans that are run, each with its table `[plan.NAME]`; `none` is the control."""
    repetitions: int = Field(ge=1)
    """How often each combination is run, each time under a seed of its own."""
    instances: int | None = Field(None, ge=1)
    """How many of each pack's instances, drawn by `seed`; all, if not given. Those of a smaller number are among those of a
    larger one. `PACK/INSTANCE` in `scenarios` names one."""
    seed: int
    """From it all draws and all seeds of requests are derived. Runs are compared only under the same seed."""
    max_attempts: int = Field(3, ge=1)
    """Attempts at one subtask in one trial; then the trial has given up."""
    repair: Repair = "reason"
    """What the next prompt tells of a rejection: nothing, the reason, or the reason and the rejected reply."""
    answer_format: AnswerFormat = DEFAULT
    """In which form all architectures ask for answers: `json`, one JSON object asked for in words; `schema`, the same, and the
    endpoint holds the model to the schema; `fenced`, code in code blocks behind the JSON."""
    study: str | None = None
    """The question beyond the paper that the report answers with a table and a figure more; none, if not given."""
    deadline_seconds: float = Field(3600.0, gt=0.0)
    """How long a trial may take in real time; then it ends in an error."""
    back_off: BackOffEntry = BackOffEntry()
    """How failed calls are made again."""
    architecture: Mapping[Name, ArchitectureEntry] = Field(default_factory=dict)
    """Variants of architectures, by name."""
    model: Mapping[Name, ModelEntry] = Field(default_factory=dict)
    """Models, by name. A table that `models` does not name is read and not run."""
    plan: Mapping[Name, PlanEntry] = Field(default_factory=dict)
    """Fault plans, by name."""

    @model_validator(mode="after")
    def _resolved(self) -> Config:
        for what in ("scenarios", "architectures", "models", "plans"):
            names = getattr(self, what)
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"{what}: '{name}' stands twice")
        for name in self.models:
            if name not in self.model:
                raise ValueError(f"unknown model '{name}'; {nearest(name, self.model)}; add a table [model.{name}] for another")
        for name in self.plans:
            if name not in self.plan and name != FAULT_FREE:
                raise ValueError(f"unknown fault plan '{name}'; {nearest(name, [*self.plan, 'none'])}")
        return self

    def format_of(self, model: str) -> AnswerFormat:
        """In which form this model is asked to answer."""
        entry = self.model.get(model)
        return (entry.answer_format if entry else None) or self.answer_format

    @model_validator(mode="after")
    def _held_where_it_says_how(self) -> Config:
        """An endpoint that is told nothing would hold no model to anything, whatever its table says of how to tell it."""
        for name in self.models:
            entry = self.model.get(name)
            if isinstance(entry, OpenAIEntry) and entry.response_format and self.format_of(name) != "schema":
                said = f"model '{name}': response_format says how an endpoint is told to hold a model to the schema"
                raise ValueError(f'{said}; add answer_format = "schema", or leave it out')
        return self

    def base(self, architecture: str) -> str:
        """The architecture that this one is a variant of, `command` where it is one, or itself."""
        variant = self.architecture.get(architecture)
        return (variant.base or COMMAND) if variant else architecture

    def is_parallel(self, architecture: str) -> bool:
        """Whether this is a variant that asks at the same time for what can be asked at the same time."""
        variant = self.architecture.get(architecture)
        return bool(variant and variant.parallel)

    def form_of(self, architecture: str) -> Form | None:
        """The form that a variant asks for; None where it is none, or asks for none."""
        variant = self.architecture.get(architecture)
        return variant.form if variant else None

    @model_validator(mode="after")
    def _routes_end(self) -> Config:
        for name, entry in self.model.items():
            for target in entry.targets if isinstance(entry, RoutedEntry) else ():
                if target not in self.model:
                    raise ValueError(f"model '{name}' routes to an unknown model '{target}'; {nearest(target, self.model)}")
                if isinstance(self.model[target], RoutedEntry):
                    raise ValueError(f"model '{name}' routes to '{target}', which is routed itself; name a model that answers")
                if (one := self.format_of(name)) != (other := self.format_of(target)):
                    said = (
                        f"model '{name}' is asked for {one} answers and routes to '{target}', which is asked for {other} ones"
                    )
                    raise ValueError(f"{said}; give both the same answer_format")
        return self


def load_config(path: Path, overrides: Mapping[str, Any], models: Mapping[str, Mapping[str, Any]] | None = None) -> Config:
    """Read a config, put the overrides that are not None in the place of its keys, and `models` among its models.

    Raises ConfigError: an unreadable file, no TOML, an unknown key, a value that does not fit.
    """
    values = {**read_toml(path), **{key: value for key, value in overrides.items() if value is not None}}
    if models and isinstance(tables := values.get("model", {}), dict):
        values["model"] = {**tables, **models}
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{path}: {_first(error)}") from error


def _first(error: ValidationError) -> str:
    """The first thing that is wrong, in one line. An unknown key comes first, with the nearest known one: where a key is
    misspelt, the right one is missing as well."""
    found = violations(error)
    first = next((one for one in found if one.kind == "extra_forbidden"), found[0])
    place = _without_tag(first.place)
    if first.kind == "extra_forbidden":
        if place in RENAMED:
            return f"the key '{place}' is called '{RENAMED[place]}' now; rename it in the config"
        return f"unknown key '{place}'; {nearest(place.rpartition('.')[2], _keys_beside(place.split('.')))}"
    return replace(first, place=place).line


def _without_tag(place: str) -> str:
    """The place as the config has it: pydantic puts a model's kind into the path."""
    steps = place.split(".")
    return ".".join(steps[:2] + steps[3:]) if steps[0] == "model" and len(steps) > 3 else place


def _keys_beside(names: Sequence[str]) -> list[str]:
    tables: Mapping[str, list[type[BaseModel]]] = {
        "architecture": [ArchitectureEntry],
        "model": [SimulatedEntry, OpenAIEntry, RecordedEntry, RoutedEntry],
        "plan": [FaultEntry] if len(names) > 3 else [PlanEntry],
        "back_off": [BackOffEntry],
    }
    beside = tables.get(names[0], [Config]) if len(names) > 1 else [Config]
    return [key for one in beside for key in one.model_fields]


def resolve_plan(config: Config, name: str, scenario: Scenario) -> FaultPlan:
    """The fault plan as it is for one scenario. Raises ConfigError where it names a subtask that the scenario lacks, or
    where an effect could never strike that subtask."""
    entries = config.plan[name].faults if name in config.plan else ()
    return FaultPlan(name, tuple(_resolve_fault(entry, name, scenario) for entry in entries))


def _resolve_fault(entry: FaultEntry, plan: str, scenario: Scenario) -> Fault:
    pack = scenario.name.partition(":")[0]
    if entry.point in WORLD_POINTS:
        fault = Fault(entry.point, entry.effect, EVERY, entry.attempts, entry.probability, entry.seconds, entry.minutes)
        given = entry.event if entry.point == "event" else entry.tool
        return in_world(fault, entry.target_key, given, pack, f"plan '{plan}'", scenario.environment)
    names = [one.name for one in scenario.task.subtasks]
    subtask = entry.subtask.get(pack) if isinstance(entry.subtask, dict) else entry.subtask
    if entry.position:
        subtask = at_position(names, entry.position)
    if subtask is None:
        raise ConfigError(f"plan '{plan}': {entry.effect} names no subtask for scenario '{pack}'; add {pack} = \"...\" to it")
    if subtask != EVERY and subtask not in names:
        raise ConfigError(f"plan '{plan}': scenario '{pack}' has no subtask '{subtask}'; {nearest(subtask, names)}")
    if entry.point == "input" and EFFECTS[entry.effect].needs_json and not _reads_outputs(scenario, subtask):
        raise ConfigError(f"plan '{plan}': '{subtask}' reads only documents, so {entry.effect} can never strike its input")
    return Fault(entry.point, entry.effect, subtask, entry.attempts, entry.probability, entry.seconds)


def at_position(names: Sequence[str], position: Position) -> str:
    """Of n names in the task's order the first, the (n - 1) // 2-th counted from 0, or the last."""
    return names[{"first": 0, "middle": (len(names) - 1) // 2, "last": -1}[position]]


def _reads_outputs(scenario: Scenario, subtask: str) -> bool:
    """Whether this subtask, or for `*` any, reads an earlier subtask's output."""
    subtasks = [one for one in scenario.task.subtasks if subtask in (EVERY, one.name)]
    return any(set(one.reads) - set(scenario.task.documents) for one in subtasks)
