"""Handle an endpoint that fails: hold back all calls to it, test it with small calls, and let the run continue or end."""

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
from bench.run.trial.gate import FAILURES_BEFORE_PAUSE, Gate


def gates_of(models: Iterable[Model], back_off: BackOff) -> dict[str, Gate]:
    """Return the gate of each endpoint. A recording's gate has the limit of the recorded run, so that calls wait for one
    another as they did there."""
    limits: dict[str, int] = {}
    live = set[str]()
    for model in itertools.chain.from_iterable(map(answerers, models)):
        limits[model.endpoint] = max(model.concurrency, limits.get(model.endpoint, 0))
        live |= {model.endpoint} if model.timing == "live" else set()
    return {endpoint: Gate(limit, watches=endpoint in live, longest=back_off.most) for endpoint, limit in limits.items()}


def trouble_of(gates: Mapping[str, Gate]) -> tuple[EndpointTrouble, ...]:
    """Return a record of the trouble at each endpoint that had any."""
    troubles = ((endpoint, gate.most, gate.trouble) for endpoint, gate in gates.items())
    return tuple(
        EndpointTrouble(endpoint, limit, trouble.fell, trouble.lowest, trouble.pauses, round(trouble.paused, 3))
        for endpoint, limit, trouble in troubles
        if trouble.fell or trouble.pauses
    )


async def watch_endpoint(gate: Gate, model: Model, back_off: BackOff, session: Session) -> None:
    """Handle trouble at this model's endpoint until this task is cancelled.

    A pause lasts as long as the back-off after the failures and pauses so far. After `back_off.tries` pauses without an
    answered call in between, the session ends with an EndpointError.
    """
    while not session.why:
        await gate.pausing.wait()
        session.say(f"{model.endpoint}: {FAILURES_BEFORE_PAUSE} calls in a row failed ({gate.detail}); the run pauses")
        if await _wait_for_endpoint(gate, model, back_off, session):
            session.say(f"{model.endpoint}: answers again; the run goes on")
            gate.resume()


async def _wait_for_endpoint(gate: Gate, model: Model, back_off: BackOff, session: Session) -> bool:
    """Wait and test the endpoint, with a call that belongs to no trial, until it answers. Return False if the session has
    ended."""
    problem_text = f"model '{model.name}' at {model.endpoint}: {gate.detail}"
    while not session.why:
        if gate.pauses >= back_off.tries:
            problem = f"{problem_text}; no reply after {gate.pauses} pauses: the same command goes on once it answers again"
            session.end("the endpoint is in trouble", EndpointError(problem))
            return False
        gate.pauses += 1
        seconds = back_off.seconds(FAILURES_BEFORE_PAUSE + gate.pauses - 1, None)
        gate.trouble.paused += seconds
        await asyncio.sleep(seconds)
        try:
            await model.prepare(patient=False)
        except EndpointError as error:
            problem_text = str(error)
        else:
            return True
    return False
