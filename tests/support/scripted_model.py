"""A model that answers from a script and remembers what it was asked: no network, no time of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from bench.common.errors import CallFailed
from bench.record.messages import Timing
from bench.run.models.base import Reply, Request, Sleep
from bench.scenario import Json

Line = Json | str | Reply | CallFailed | None
"""What is answered: JSON, a text as it stands, a whole reply, or a failure to raise; None stands for the reference answer."""


class ScriptedModel:
    """Answers a request for some subtasks with the next line of their script, then with the reference.

    script    subtask, or subtasks joined by `+`, -> lines in the order in which they are asked
    seconds   how long a call takes on the trial's clock
    requests  everything that was asked, in order
    """

    timing: Timing = "simulated"
    concurrency = 1
    endpoint = "scripted"
    name = "scripted"

    def __init__(
        self,
        reference: Mapping[str, Json],
        script: Mapping[str, Sequence[Line]] | None = None,
        seconds: Callable[[Request], float] = lambda _: 1.0,
    ):
        self._reference, self._seconds = reference, seconds
        self._script = {name: list(lines) for name, lines in (script or {}).items()}
        self.requests: list[Request] = []

    @property
    def parameters(self) -> dict[str, object]:
        return {"kind": "scripted"}

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        self.requests.append(request)
        await sleep(self._seconds(request))
        return _reply(self._next(request.context.subtasks))

    def _next(self, subtasks: tuple[str, ...]) -> Line:
        lines = self._script.get("+".join(subtasks), [])
        line = lines.pop(0) if lines else None
        if line is not None:
            return line
        outputs = {name: self._reference[name] for name in subtasks}
        return outputs if len(outputs) > 1 else outputs[subtasks[0]]

    async def prepare(self, patient: bool = True) -> None:
        pass

    async def close(self) -> None:
        pass


def _reply(line: Line) -> Reply:
    if isinstance(line, CallFailed):
        raise line
    if isinstance(line, Reply):
        return line
    return Reply(line if isinstance(line, str) else json.dumps(line))
