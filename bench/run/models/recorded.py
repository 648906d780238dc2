"""A model that answers from a recorded run: the same request gets the same reply, with its recorded usage and seconds.

A request is answered if the recorded run sent the same messages with the same seed. The seed depends on the scenario, the
repetition and the attempt. So any architecture and any fault plan can be replayed up to the first request that the recorded run
never made, such as a repair prompt that names another error. Any further request fails with `NotRecorded`; no reply is made up.

If several trials of the recording sent the same request, each arm gets its own trial's reply. An arm that was not recorded gets
the reply of the first trial.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from bench.common.errors import CallFailed, NotRecorded
from bench.common.numbers import Price
from bench.record.messages import Timing
from bench.run.models.base import Reply, Request, Sleep
from bench.run.models.making import Making
from bench.run.models.recording import Recording


class RecordedSettings(BaseModel):
    """A model of a recorded run: each request is answered from that run's log. `--model recorded:RUN` needs no such table."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: Path
    """The run's folder."""
    model: str | None = None
    """The model's name in that run; by default its name here."""
    price_in: Price | None = None
    """Dollars per million tokens read, instead of the recorded price."""
    price_out: Price | None = None
    """Dollars per million tokens written, instead of the recorded price."""
    price_cached: Price | None = None
    """Dollars per million tokens read from the provider's prompt cache, instead of the recorded price."""
    concurrency: int | None = Field(None, ge=1)
    """How many calls run at a time here, instead of the run's number. Each call still takes its recorded seconds, and the
    model's label says so."""


class RecordedModel:
    """A model that gives the replies of a recorded run. Its parameters are the recorded model's parameters and the recording's
    name."""

    timing: Timing = "recorded"

    def __init__(self, name: str, recording: Recording, parameters: Mapping[str, object]):
        self.name = name
        self.endpoint = recording.description
        self.concurrency = recording.concurrency
        self._recording = recording
        self._parameters = parameters

    @property
    def parameters(self) -> dict[str, object]:
        return dict(self._parameters)

    @property
    def history(self) -> object:
        """The history of the recorded run. It determines no reply, so it is no parameter."""
        return self._recording.history

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        """Return the recorded reply or raise the recorded failure. Raises NotRecorded if the recording has neither."""
        response = self._recording.find(request)
        if response is None:
            raise NotRecorded(self._missing(request))
        await sleep(response.seconds)
        if isinstance(response.outcome, CallFailed):
            raise response.outcome.with_traceback(None)
        return response.outcome

    def _missing(self, request: Request) -> str:
        """Return the message that the recording has no reply to this request."""
        context = request.context
        trial = f"{context.scenario}, {context.arm}, repetition {context.repetition}"
        attempt = f"attempt {context.attempt} at {' + '.join(context.subtasks)}"
        problem = f"the recording {self._recording.name} holds no reply to {attempt} ({trial})"
        return f"{problem}; to record one, run or serve this config on {self.name} itself, without recorded:"

    async def prepare(self, patient: bool = True) -> None:
        pass

    async def close(self) -> None:
        pass


def make_model(settings: RecordedSettings, making: Making) -> RecordedModel:
    """Make a model that answers from a recording."""
    recording, parameters = making.recording(settings.run, settings.model or making.name, settings.concurrency)
    prices = settings.model_dump(include={"price_in", "price_out", "price_cached"}, exclude_none=True)
    return RecordedModel(making.name, recording, {**parameters, **prices})
