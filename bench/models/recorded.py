"""A model that answers from a recorded run: the same request gets the same reply, with its recorded usage and seconds.

How far a recording reaches: a request is answered if the recorded run sent just these messages with just this seed, and the
seed is that of the scenario, the repetition and the attempt. So any architecture and any fault plan can be replayed up to the
first request that the recorded run never made, such as a repair prompt that names another error. What is asked beyond that is
`NotRecorded`; nothing is ever put in its place.

Where several trials of the recording sent the same request, each arm is given its own trial's reply, and an arm that was not
recorded the first one's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bench.errors import CallFailed, NotRecorded
from bench.models.base import Asked, Reply, Request, Response, Sleep, Timing

Sent = tuple[Asked, int]
"""What was asked, and the how manieth time."""


class Recording:
    """What one model did in one run, in the order in which it was recorded; `name` and `date` are the run's, `concurrency` is
    how many calls at a time it took there, or is `declared` to take, `history` what that run went through."""

    def __init__(
        self,
        name: str,
        date: str,
        responses: Iterable[Response],
        concurrency: int = 1,
        history: Mapping[str, object] | None = None,
        declared: bool = False,
    ):
        self.name, self.date, self.concurrency, self.history = name, date, concurrency, dict(history or {})
        self.said = f"the run {name}, recorded on {date}{f', {concurrency} calls at a time as declared' if declared else ''}"
        self._of_arm: dict[tuple[str, Sent], Response] = {}
        self._of_any: dict[Sent, Response] = {}
        for response in responses:
            sent = _sent(response.request)
            self._of_arm[response.request.context.arm, sent] = response
            self._of_any.setdefault(sent, response)

    def __len__(self) -> int:
        return len(self._of_arm)

    def find(self, request: Request) -> Response | None:
        sent = _sent(request)
        return self._of_arm.get((request.context.arm, sent)) or self._of_any.get(sent)


def _sent(request: Request) -> Sent:
    return request.asked, request.occurrence


class RecordedModel:
    """Implements `bench.models.base.Model`. Its parameters are those of the recorded model, and which recording it is."""

    timing: Timing = "recorded"

    def __init__(self, name: str, recording: Recording, parameters: Mapping[str, object]):
        self.name = name
        self.endpoint = recording.said
        self.concurrency = recording.concurrency
        self._recording = recording
        self._parameters = parameters

    @property
    def parameters(self) -> dict[str, object]:
        return dict(self._parameters)

    @property
    def history(self) -> dict[str, object]:
        """What the recorded run went through; it determines nothing here, so it is no parameter."""
        return self._recording.history

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        """The recorded reply, or the recorded failure; raises NotRecorded where there is neither."""
        found = self._recording.find(request)
        if found is None:
            raise NotRecorded(self._missing(request))
        await sleep(found.seconds)
        if isinstance(found.outcome, CallFailed):
            raise found.outcome.with_traceback(None)
        return found.outcome

    def _missing(self, request: Request) -> str:
        context = request.context
        where = f"{context.scenario}, {context.arm}, repetition {context.repetition}"
        what = f"attempt {context.attempt} at {' + '.join(context.subtasks)}"
        said = f"the recording {self._recording.name} holds no reply to {what} ({where})"
        return f"{said}; to record one, run or serve this config on {self.name} itself, without recorded:"

    async def prepare(self, patient: bool = True) -> None:
        pass

    async def close(self) -> None:
        pass
