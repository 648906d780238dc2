"""The world `refunds` for the tests: by itself, with parts exchanged, and lived in by an architecture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from trials import GRADERS, Fault

from bench.record.world_events import WorldEnded
from bench.run.architectures.part import Architecture
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import build_matrix
from bench.run.experiment.trial import TrialResult, run_trial
from bench.run.models.base import Model, Response
from bench.run.packs import load_pack
from bench.run.trial.loop import run
from bench.run.trial.slots import Slots
from bench.run.trial.trial import Server, no_server
from bench.run.trial.workbench import Workbench
from bench.scenario import Scenario, Task
from bench.worlds.run.environment import Environment, Tool, World

ROOT = Path(__file__).parent / "worlds"
REFUNDS: Scenario = load_pack("refunds", [ROOT])
assert REFUNDS.environment is not None
ENVIRONMENT: Environment = REFUNDS.environment


class Nothing(BaseModel):
    pass


def world(**changes: Any) -> World:
    """A new world, of an environment with these fields exchanged; without a throttle, unless it is given."""
    return World(replace(ENVIRONMENT, **{"throttle": 0, **changes}))


def with_tool(tool: Tool, **changes: Any) -> World:
    """A new world that has this tool as well."""
    return world(tools=(*ENVIRONMENT.tools, tool), **changes)


def lived(
    architecture: Architecture,
    faults: Sequence[Fault] = (),
    environment: Environment = ENVIRONMENT,
    repetition: int = 1,
    server: Server = no_server,
    model: Model | None = None,
    on_response: Callable[[Response], object] = lambda _: None,
    **settings: Any,
) -> TrialResult:
    """One trial of this architecture in the world. Assertions that fail in it fail the test."""

    async def asserted(task: Task, workbench: Workbench) -> None:
        try:
            await architecture(task, workbench)
        except AssertionError as error:  # an exception in a trial is an outcome, a test's is not
            wrong.append(error)

    wrong: list[AssertionError] = []
    values = {
        "name": "test",
        "scenarios": ["refunds"],
        "architectures": ["clerks:bare"],
        "models": ["m"],
        "plans": ["plan"] if faults else ["none"],
        "repetitions": repetition,
        "seed": 7,
        "model": {"m": {"kind": "simulated"}},
        "plan": {"plan": {"faults": list(faults)}},
        **settings,
    }
    scenario = replace(REFUNDS, environment=environment)
    matrix = build_matrix(Config.model_validate(values), (), "code", scenarios={"refunds": scenario})
    matrix = replace(matrix.with_architecture(asserted), server=server, models={"m": model} if model else matrix.models)
    result = run(run_trial(matrix.specs[repetition - 1], matrix, Slots(), GRADERS, on_response))
    for error in wrong:
        raise error
    return result


def ended(result: TrialResult) -> WorldEnded:
    """What became of the world of a trial."""
    return next(event for event in result.record.events if isinstance(event, WorldEnded))


def harm(result: TrialResult) -> dict[str, int]:
    """The damage of a trial, without what is zero."""
    return {kind: count for kind, count in ended(result).damage.items() if count}
