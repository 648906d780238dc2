"""At probability 1 every planned fault arrives: in each trial, for every effect, at every point, on every architecture.

The suite runs a sample of each cell's trials; `pytest -m slow` runs 1,000 of each.
"""

from __future__ import annotations

import pytest
from trials import CELLS, GRADERS, OURS, matrix_of, needs_json

from bench.record.events import Faulted
from bench.record.record import TrialRecord
from bench.run.experiment.trial import run_trial
from bench.run.trial.loop import run
from bench.run.trial.slots import Slots

SAMPLE, ALL = 5, 1000


def unexposed(effect: str, point: str, architecture: str) -> bool:
    """One call that does the whole task reads no output of another: such a fault is due to nothing that it is given."""
    return architecture.startswith("monolithic") and point == "input" and needs_json(effect, point)


def is_whole(record: TrialRecord, exposed: bool) -> bool:
    """Whether the trial carried faults, and each planned one was delivered."""
    planned = {event.fault for event in record.events if isinstance(event, Faulted) and event.stage == "planned"}
    delivered = {event.fault for event in record.events if isinstance(event, Faulted) and event.stage == "delivered"}
    moot = any(isinstance(event, Faulted) and event.stage == "not_applicable" for event in record.events)
    return planned == delivered and bool(planned) is exposed and not moot and record.outcome != "error"


def whole_trials(effect: str, point: str, architecture: str, trials: int) -> int:
    fault = {"effect": effect, "point": point, "probability": 1.0}
    matrix = matrix_of(plans={"p": [fault]}, architectures=[architecture], repetitions=trials, max_attempts=2)
    exposed = not unexposed(effect, point, architecture)

    async def count() -> int:
        records = [(await run_trial(spec, matrix, Slots(), GRADERS)).record for spec in matrix.specs]
        return sum(is_whole(record, exposed) for record in records)

    return run(count())


@pytest.mark.parametrize(("effect", "point"), CELLS)
def test_at_probability_1_every_planned_fault_is_delivered(effect: str, point: str) -> None:
    whole = {architecture: whole_trials(effect, point, architecture, SAMPLE) for architecture in OURS}
    assert whole == dict.fromkeys(OURS, SAMPLE)


@pytest.mark.slow
@pytest.mark.parametrize("architecture", OURS)
@pytest.mark.parametrize(("effect", "point"), CELLS)
def test_in_1000_of_1000_trials_every_planned_fault_is_delivered(effect: str, point: str, architecture: str) -> None:
    assert whole_trials(effect, point, architecture, ALL) == ALL
