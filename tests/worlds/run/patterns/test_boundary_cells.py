"""Every cell of the boundary ends in an outcome whatever the proposer says: what it lets through is damage, no exception."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest
from trials import GRADERS, ROOTS
from trips import PATTERNS

from bench.record.form import Commit, Form, Signal, Strength
from bench.record.world_events import WorldEnded
from bench.run.architectures.registry import ARCHITECTURES, load_architecture
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import Matrix, build_matrix
from bench.run.experiment.trial import TrialResult, run_trial
from bench.run.models.base import Reply, Request, Sleep
from bench.run.models.simulated import SimulatedModel, SimulatedSettings
from bench.run.packs import load_pack
from bench.run.trial.loop import run
from bench.run.trial.slots import Slots
from bench.scenario import Scenario

WORLDS = {"contract_renewal": ("case_01", "case_04"), "incident_response": ("case_01", "case_09"), "trips": ("all",)}
CELLS = [Form(False, *cell) for cell in product(*map(get_args, (Strength, Commit, Signal)))]
ODD: tuple[Any, ...] = (None, [], {}, "no such thing", -1, 10**30, 0.5, True)


class Confused(SimulatedModel):
    """Every second reply lacks a field, or has an odd value in one."""

    def __init__(self, scenario: Scenario, form: Form):
        super().__init__("m", SimulatedSettings(wrapping=False), {scenario.key: scenario})
        self._draw = Random(f"{scenario.key} {form}")

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        right = await super().reply(request, sleep)
        value = json.loads(right.text)
        if self._draw.random() < 0.5:
            name = self._draw.choice(sorted(value))
            odd = self._draw.choice((..., *ODD))
            value = {key: part for key, part in value.items() if key != name} | ({} if odd is ... else {name: odd})
        return Reply(json.dumps(value))


def matrices(world: str) -> Iterator[tuple[Matrix, Scenario]]:
    for instance in WORLDS[world]:
        scenario = load_pack(world, [*ROOTS, Path(__file__).parents[3] / "support" / "worlds"], instance)
        values = {
            "name": "test",
            "scenarios": [world],
            "architectures": ["bare_agent"],
            "models": ["m"],
            "plans": ["lost"],
            "repetitions": 1,
            "seed": 7,
            "model": {"m": {"kind": "simulated"}},
            "plan": {"lost": {"faults": [{"point": "tool", "effect": "lost_ack", "tool": "*", "probability": 0.2}]}},
        }
        yield build_matrix(Config.model_validate(values), (), "code", scenarios={world: scenario}), scenario


def worked(pattern: str, form: Form, matrix: Matrix, scenario: Scenario) -> TrialResult:
    architecture = load_architecture(ARCHITECTURES[pattern], form=form)
    whole = replace(matrix.with_architecture(architecture), models={"m": Confused(scenario, form)})
    return run(run_trial(whole.specs[0], whole, Slots(), GRADERS))


@pytest.mark.parametrize("world", WORLDS)
def test_every_cell_of_the_boundary_ends_in_an_outcome_and_in_counted_damage(world: str) -> None:
    for matrix, scenario in matrices(world):
        for form in CELLS:
            record = worked("state_machine", form, matrix, scenario).record
            assert record.outcome in ("solved", "wrong", "gave_up"), (form, record.reason)
            assert any(isinstance(event, WorldEnded) for event in record.events)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_ends_in_an_outcome_with_the_weakest_boundaries(pattern: str) -> None:
    [(matrix, scenario), _] = matrices("incident_response")
    told_nothing = Form(strength="none", commit="plain", signal="as_success")
    for form in (Form(strength="none", commit="plain"), told_nothing, replace(told_nothing, remedies=True)):
        record = worked(pattern, form, matrix, scenario).record
        assert record.outcome in ("solved", "wrong", "gave_up"), (form, record.reason)
