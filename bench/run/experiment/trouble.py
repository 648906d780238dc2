"""The handling of an endpoint in trouble: all calls to it are held back, a tiny call tests it, and the run continues or
ends."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Mapping

from bench.common.errors import EndpointError
from bench.record.record import EndpointTrouble
from bench.run.experiment.session import Session
from bench.run.models.base import Model
from bench.run.models.routed import answerers
from bench.run.trial.call import BackOff
from bench.run.trial.gate import IN_A_ROW, Gate


def gates_of(models: Iterable[Model], back_off: BackOff) -> dict[str, Gate]:
    """Return endpoint -> gate. A recording's gate lets calls wait for each other as they did in the recorded run."""
    bounds: dict[str, int] = {}
    live = set[str]()
    for model in itertools.chain.from_iterable(map(answerers, models)):
        bounds[model.endpoint] = max(model.concurrency, bounds.get(model.endpoint, 0))
        live |= {model.endpoint} if model.timing == "live" else set()
    return {endpoint: Gate(most, watches=endpoint in live, longest=back_off.most) for endpoint, most in bounds.items()}


def trouble_of(gates: Mapping[str, Gate]) -> tuple[EndpointTrouble, ...]:
    """Return the trouble of each endpoint that had any."""
    seen = ((endpoint, gate.most, gate.trouble) for endpoint, gate in gates.items())
    return tuple(
        EndpointTrouble(endpoint, most, trouble.fell, trouble.lowest, trouble.pauses, round(trouble.paused, 3))
        for endpoint, most, trouble in seen
        if trouble.fell or trouble.pauses
    )


async def tend(gate: Gate, model: Model, back_off: BackOff, session: Session) -> None:
    """Handle trouble at this model's endpoint, until cancelled.

    A pause lasts as long as a back-off after so many failures. After `back_off.tries` pauses without an answered call in
    between, the session ends with an EndpointError.
    """
    while not session.why:
        await gate.pausing.wait()
        session.say(f"{model.endpoint}: {IN_A_ROW} calls in a row failed ({gate.detail}); the run pauses")
        if await _came_back(gate, model, back_off, session):
            session.say(f"{model.endpoint}: answers again; the run goes on")
            gate.resume()


async def _came_back(gate: Gate, model: Model, back_off: BackOff, session: Session) -> bool:
    """Test the endpoint after each pause, with a call that belongs to no trial. Returns False if the session has ended."""
    wrong = f"model '{model.name}' at {model.endpoint}: {gate.detail}"
    while not session.why:
        if gate.pauses >= back_off.tries:
            problem = f"{wrong}; no reply after {gate.pauses} pauses: the same command goes on once it answers again"
            session.end("the endpoint is in trouble", EndpointError(problem))
            return False
        gate.pauses += 1
        seconds = back_off.seconds(IN_A_ROW + gate.pauses - 1, None)
        gate.trouble.paused += seconds
        await asyncio.sleep(seconds)
        try:
            await model.prepare(patient=False)
        except EndpointError as error:
            wrong = str(error)
        else:
            return True
    return False
