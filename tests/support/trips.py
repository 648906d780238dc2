"""The world `trips` for the tests of the patterns: a few trips, worked on by one pattern in one form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from little_worlds import harm
from trials import GRADERS, Fault
from worlds.trips.scenario import Trip, environment

from bench.record.form import Form
from bench.record.world_events import Stored, ToolCalled
from bench.run.architectures.part import Architecture
from bench.run.architectures.registry import ARCHITECTURES, load_architecture
from bench.run.experiment.config import Config
from bench.run.experiment.matrix import build_matrix
from bench.run.experiment.trial import TrialResult, run_trial
from bench.run.models.base import Model, Reply, Request, Sleep
from bench.run.models.simulated import SimulatedModel, SimulatedSettings
from bench.run.packs import load_pack
from bench.run.trial.loop import run
from bench.run.trial.slots import Slots
from bench.scenario import Scenario
from bench.worlds.read.workflow import waiting_for_people
from bench.worlds.run.entries import PATTERNS
from bench.worlds.run.environment import Call, Environment, Policy, PolicyVerdict, ProcedureStep

BARE, REMEDIED = Form(), Form(remedies=True)
ONE = (Trip(1, 300),)
PACK: Scenario = load_pack("trips", [Path(__file__).parent / "worlds"], "all")


def worked(
    pattern: str | Architecture,
    form: Form = REMEDIED,
    faults: Sequence[Fault] = (),
    trips: Sequence[Trip] = ONE,
    strikes: Sequence[int] = (),
    *,
    world: Environment | None = None,
    repetition: int = 1,
    model: Model | None = None,
) -> TrialResult:
    """One trial. Without a model of its own it is answered right."""
    values = {
        "name": "test",
        "scenarios": ["trips"],
        "architectures": ["bare_agent"],
        "models": ["m"],
        "plans": ["plan"] if faults else ["none"],
        "repetitions": repetition,
        "seed": 7,
        "model": {"m": {"kind": "simulated", "wrapping": False}},
        "plan": {"plan": {"faults": list(faults)}},
    }
    scenario = replace(PACK, environment=world or environment(trips, strikes))
    matrix = build_matrix(Config.model_validate(values), (), "code", scenarios={"trips": scenario})
    whole = load_architecture(ARCHITECTURES[pattern], form=form) if isinstance(pattern, str) else pattern
    matrix = replace(matrix.with_architecture(whole), models={"m": model} if model else matrix.models)
    return run(run_trial(matrix.specs[repetition - 1], matrix, Slots(), GRADERS))


class Says(SimulatedModel):
    """Says these first, and then what is right; `heard` are the prompts that it was sent."""

    def __init__(self, *lines: str):
        super().__init__("m", SimulatedSettings(wrapping=False), {PACK.key: PACK})
        self._lines, self.heard = list(lines), list[str]()

    async def reply(self, request: Request, sleep: Sleep) -> Reply:
        self.heard.append(request.messages[-1].content)
        return Reply(self._lines.pop(0)) if self._lines else await super().reply(request, sleep)


AGAINST_POLICY = '{"book": true, "amount": 499}'


def denying() -> Any:
    """The world of one trip that is paid as soon as it is judged, and whose policy denies a payment of anything but 300."""

    def decide(_: Any, tool: str, arguments: Any, __: Any) -> PolicyVerdict:
        wrong = tool == "pay" and arguments.amount != 300
        return PolicyVerdict("deny", "price", f"{arguments.amount} is not the price") if wrong else PolicyVerdict()

    paid = ProcedureStep(
        "choose 1",
        on="requested",
        reads=lambda _: {"trip": Call("read_trip", {"trip": 1})},
        judgment="choose",
        effects=lambda facts: [Call("pay", {"trip": 1, "amount": facts.decided["choose 1"]["amount"]})],
    )
    return replace(environment(ONE), policy=Policy("strict", decide), procedure=(paid,))


def effects(result: TrialResult) -> list[str]:
    """The tool of each effect that happened, in order, as the agent was told."""
    tools = [event for event in result.record.events if isinstance(event, ToolCalled)]
    return [event.tool for event in tools if event.outcome == "done" and event.access != "read"]


def waited(result: TrialResult) -> int:
    """World minutes in which it waited for people."""
    return waiting_for_people(result.record.events)


def stored(result: TrialResult, name: str) -> int:
    """How often the pattern wrote this to its store."""
    return sum(isinstance(event, Stored) and event.name == name for event in result.record.events)


__all__ = [
    "AGAINST_POLICY",
    "BARE",
    "ONE",
    "PATTERNS",
    "REMEDIED",
    "Says",
    "Trip",
    "denying",
    "effects",
    "environment",
    "harm",
    "stored",
    "waited",
    "worked",
]
