"""A model that passes each request on to another model of the config, by the request's subtasks, or by the process of the agent
that asks.

With this model an experiment measures the gain of a larger model for only some subtasks, or the effect of a new model version
while an agent is at work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field, model_validator

from bench.common.bounds import Lookup
from bench.common.errors import CallFailed, ConfigError
from bench.record.messages import Timing
from bench.record.model_parameters import target_of
from bench.run.models.base import Model, Reply, Request, Sleep
from bench.run.models.making import Making


class RoutedSettings(BaseModel):
    """A model that passes each request on to another model of the config, by the request's subtasks, or by the process of the
    agent that asks.

    A request for several subtasks at once, such as a monolithic architecture's, goes to the default unless all of them are
    routed to the same model: one reply cannot be divided.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    default: str
    """The model that does all subtasks that `subtasks` does not name."""
    subtasks: Lookup[str, str] = Field(default_factory=dict)
    """Subtask -> the name of the model that does it."""
    after_crash: str | None = Field(None, exclude_if=lambda model: model is None)
    """In a world: the model that replaces `default` for all subtasks once the agent's process has died. So a fault plan says at
    which step the model is exchanged."""

    @model_validator(mode="after")
    def _require_route(self) -> RoutedSettings:
        """Require either `subtasks` or `after_crash`."""
        if bool(self.subtasks) == bool(self.after_crash):
            raise ValueError("name either the subtasks that another model does, or the model after_crash")
        return self

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of all models that can get a request, each once."""
        return tuple(dict.fromkeys((self.default, *self.subtasks.values(), *filter(None, [self.after_crash]))))

    def target(self, subtasks: Sequence[str], life: int = 1) -> str:
        """Return the name of the model for these subtasks. `life` is the number of the agent's process."""
        default = self.after_crash if self.after_crash and life > 1 else self.default
        return target_of(default, self.subtasks, subtasks)


class RoutedModel:
    """A model that routes requests to other models. It implements `bench.run.models.base.Model`. Replies and failures name the
    model that answered.

    Raises ConfigError if only some of these models take real time: a trial has one clock.
    """

    def __init__(self, name: str, settings: RoutedSettings, models: Mapping[str, Model]):
        self.name, self._settings = name, settings
        self._models = {target: models[target] for target in settings.targets}
        self.endpoint = " and ".join(dict.fromkeys(model.endpoint for model in self._models.values()))
        self.concurrency = max(model.concurrency for model in self._models.values())
        self.timing: Timing = self._models[settings.default].timing
        for target, model in self._models.items():
            if model.timing != self.timing:
                problem = f"'{settings.default}' is {self.timing}, '{target}' is {model.timing}"
                raise ConfigError(f"model '{name}': {problem}; a routed model needs models whose seconds are of one kind")

    @property
    def parameters(self) -> dict[str, object]:
        models = {target: model.parameters for target, model in self._models.items()}
        return {"kind": "routed", **self._settings.model_dump(exclude={"answer_format", "draft_tags"}), "models": models}

    @property
    def answerers(self) -> tuple[Model, ...]:
        return tuple(self._models.values())

    def answering(self, request: Request) -> Model:
        """Return the model that answers this request."""
        return self._models[self._settings.target(request.context.subtasks, request.context.life)]

    def in_life(self, life: int) -> Model:
        """Return the model for all requests of the agent's process number `life`; this model if the choice depends on the
        subtasks."""
        return self if self._settings.subtasks else self._models[self._settings.target((), life)]

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        """Return the reply of the model that answers this request. The reply, or the failure, names that model."""
        model = self.answering(request)
        try:
            return replace(await model.reply(request, sleep), by=model.name)
        except CallFailed as failure:
            failure.by = model.name
            raise

    async def prepare(self, patient: bool = True) -> None:
        for model in self.answerers:
            await model.prepare(patient)

    async def close(self) -> None:
        for model in self.answerers:
            await model.close()


def answerers(model: Model) -> tuple[Model, ...]:
    """Return the models that can answer for this model: the model itself, or the models that it routes requests to."""
    return model.answerers if isinstance(model, RoutedModel) else (model,)


def answering(model: Model, request: Request) -> Model:
    """Return the model that answers this request. The call takes a slot only at that model's endpoint."""
    return model.answering(request) if isinstance(model, RoutedModel) else model


def make_model(settings: RoutedSettings, making: Making) -> RoutedModel:
    """Make a model that routes requests to other models."""
    return RoutedModel(making.name, settings, making.others)
