"""A model that answers from a recorded run: the same request gets the same reply, with its recorded usage and seconds.

How far a recording reaches: a request is answered if the recorded run sent just these messages with just this seed, and the
seed is that of the scenario, the repetition and the attempt. So any architecture and any fault plan can be replayed up to the
first request that the recorded run never made, such as a repair prompt that names another error. What is asked beyond that is
`NotRecorded`; nothing is ever put in its place.

Where several trials of the recording sent the same request, each arm is given its own trial's reply, and an arm that was not
recorded the first one's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from bench.errors import CallFailed, NotRecorded
from bench.models.base import Reply, Request, Sleep, Timing
from bench.models.making import Making
from bench.models.recording import Recording
from bench.numbers import Price


class RecordedSettings(BaseModel):
    """A model of a recorded run: each request is answered from that run's log. `--model recorded:RUN` needs no such table."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: Path
    """The run's folder."""
    model: str | None = None
    """The model's name in that run; by default its name here."""
    price_in: Price | None = None
    """Dollars per million tokens read, in place of the recorded price."""
    price_out: Price | None = None
    """Dollars per million tokens written, in place of the recorded price."""
    concurrency: int | None = Field(None, ge=1)
    """How many calls at a time are taken here, in place of as many as in that run. Seconds are then as if each of so many
    calls took as long as it took there, and the model's label says so."""


class RecordedModel:
    """Implements `bench.models.base.Model`. Its parameters are those of the recorded model, and which recording it is."""

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
        """What the recorded run went through; it determines nothing here, so it is no parameter."""
        return self._recording.history

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        """The recorded reply, or the recorded failure; raises NotRecorded where there is neither."""
        response = self._recording.find(request)
        if response is None:
            raise NotRecorded(self._missing(request))
        await sleep(response.seconds)
        if isinstance(response.outcome, CallFailed):
            raise response.outcome.with_traceback(None)
        return response.outcome

    def _missing(self, request: Request) -> str:
        context = request.context
        where = f"{context.scenario}, {context.arm}, repetition {context.repetition}"
        what = f"attempt {context.attempt} at {' + '.join(context.subtasks)}"
        problem = f"the recording {self._recording.name} holds no reply to {what} ({where})"
        return f"{problem}; to record one, run or serve this config on {self.name} itself, without recorded:"

    async def prepare(self, patient: bool = True) -> None:
        pass

    async def close(self) -> None:
        pass


def made(settings: RecordedSettings, of: Making) -> RecordedModel:
    recording, parameters = of.recording(settings.run, settings.model or of.name, settings.concurrency)
    prices = settings.model_dump(include={"price_in", "price_out"}, exclude_none=True)
    return RecordedModel(of.name, recording, {**parameters, **prices})
