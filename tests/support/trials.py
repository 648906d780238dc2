"""Trials for the tests: from a pack, architectures and faults to results, on the simulated or on a scripted model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from scripted_model import Line, ScriptedModel

from bench.record.events import Answered, Called, Committed, Event, Faulted, Judged, Refused, SetAside, Waited
from bench.run.architectures.part import Architecture
from bench.run.architectures.registry import ARCHITECTURES
from bench.run.experiment.config import Config
from bench.run.experiment.grading import Graders
from bench.run.experiment.matrix import Matrix, TrialSpec, build_matrix
from bench.run.experiment.trial import TrialResult, run_trial
from bench.run.models.base import Model
from bench.run.packs import find_packs, instances_of, load_pack, missing_data
from bench.run.trial.effects import EFFECTS, CallEffect, TextEffect
from bench.run.trial.loop import run
from bench.run.trial.slots import Slots
from bench.run.trial.trial import Server, no_server
from bench.run.trial.workbench import Workbench
from bench.scenario import Scenario, Task

ROOTS = (Path(__file__).parents[2] / "scenarios", Path(__file__).parent / "packs")
AVAILABLE = {name: folder for name, folder in find_packs(ROOTS).items() if not missing_data(name, ROOTS)}
"""The packs that are not without their data here."""
TINY = load_pack("tiny", ROOTS)
GRADERS = Graders()
OURS = [part.name for part in ARCHITECTURES if part.acts_in == "task" and not part.makes_own_calls and not part.learns]
"""The architectures on the workbench's own line, but for what needs a learned policy."""
SYSTEMS = {part.name: part for part in ARCHITECTURES if part.acts_in == "task" and part.makes_own_calls}
"""Those that people use."""
TEXTS = {effect.name: effect for effect in EFFECTS if isinstance(effect, TextEffect)}
CALLS = {effect.name: effect for effect in EFFECTS if isinstance(effect, CallEffect)}
CELLS: list[tuple[str, str]] = sorted(
    (effect.name, point)
    for effect in (*TEXTS.values(), *CALLS.values())
    for point in effect.points
    if not getattr(effect, "alarms", False)
)
"""Each effect at each point, but for those of worlds, and for those that strike validating subtasks alone."""

Kind = TypeVar("Kind", Called, Waited, Refused, SetAside, Faulted, Judged, Committed, Answered)
Fault = dict[str, Any]


@cache
def loaded_packs() -> dict[str, Scenario]:
    """Return the default scenario of each available pack. To load them takes a second and reads the clock."""
    return {name: load_pack(name, ROOTS) for name in AVAILABLE}


def answered_packs() -> list[str]:
    """Return the available packs that end in an answer. In the others an agent acts, and the world is what is graded."""
    return [name for name, scenario in loaded_packs().items() if scenario.environment is None]


def matrix_of(
    pack: str = "tiny",
    plans: Mapping[str, Sequence[Fault]] | None = None,
    model: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Matrix:
    """The matrix of an experiment on one pack and one model; its plans are these, by name, else the one without a fault."""
    given = {name: {"faults": list(faults)} for name, faults in (plans or {}).items()}
    values = {
        "name": "test",
        "scenarios": [pack],
        "architectures": OURS,
        "models": ["m"],
        "plans": list(given) or ["none"],
        "repetitions": 1,
        "seed": 7,
        "model": {"m": {"kind": "simulated", **(model or {})}},
        "plan": given,
        **settings,
    }
    return build_matrix(Config.model_validate(values), ROOTS, "code", scenarios=loaded(pack))


@cache
def loaded(pack: str) -> Mapping[str, Scenario]:
    """The pack by its name, loaded once for all tests; none where it has several tasks."""
    if "/" in pack or len(instances_of(pack, ROOTS)) > 1:
        return {}
    return {pack: load_pack(pack, ROOTS)}


def with_model(matrix: Matrix, model: Model) -> Matrix:
    return replace(matrix, models={"m": model})


def run_all(matrix: Matrix, specs: Iterable[TrialSpec] | None = None) -> list[TrialResult]:
    """One trial after another, in the given order, else in the matrix's."""

    async def work() -> list[TrialResult]:
        chosen = matrix.specs if specs is None else specs
        try:
            return [await run_trial(spec, matrix, Slots(), GRADERS) for spec in chosen]
        finally:
            for model in matrix.models.values():
                await model.close()

    return run(work())


def scripted(
    architecture: str,
    script: Mapping[str, Sequence[Line]] | None = None,
    faults: Sequence[Fault] = (),
    pack: str = "tiny",
    **settings: Any,
) -> tuple[TrialResult, ScriptedModel]:
    """One trial on a scripted model, which afterwards holds what it was asked."""
    matrix = matrix_of(pack, {"plan": faults} if faults else None, architectures=[architecture], **settings)
    model = ScriptedModel(matrix.scenarios[pack].reference, script)
    [result] = run_all(with_model(matrix, model))
    return result, model


def conducted(
    architecture: Architecture,
    script: Mapping[str, Sequence[Line]] | None = None,
    faults: Sequence[Fault] = (),
    pack: str = "tiny",
    model: Model | None = None,
    server: Server = no_server,
    **settings: Any,
) -> TrialResult:
    """One trial of an architecture of the test's own, on a scripted model. Assertions that fail in it fail the test."""

    async def asserted(task: Task, workbench: Workbench) -> None:
        try:
            await architecture(task, workbench)
        except AssertionError as error:  # an exception in a trial is an outcome, a test's is not
            wrong.append(error)

    wrong: list[AssertionError] = []
    matrix = matrix_of(pack, {"plan": faults} if faults else None, architectures=["static"], **settings)
    matrix = replace(matrix.with_architecture(asserted), server=server)
    scenario = matrix.scenarios[matrix.specs[0].scenario_key]
    [result] = run_all(with_model(matrix, model or ScriptedModel(scenario.reference, script)), matrix.specs[:1])
    for error in wrong:
        raise error
    return result


def needs_json(effect: str, point: str) -> bool:
    """Whether this effect can strike no plain document at this point."""
    return point != "call" and TEXTS[effect].needs_json


def events(result: TrialResult | Iterable[Event], kind: type[Kind]) -> list[Kind]:
    every = result.record.events if isinstance(result, TrialResult) else result
    return [event for event in every if isinstance(event, kind)]


def calls(result: TrialResult) -> list[tuple[str, int, str]]:
    """(subtasks joined by `+`, attempt, cause) of each call, in order."""
    return [("+".join(call.subtasks), call.attempt, call.cause) for call in events(result, Called)]


def verdicts(result: TrialResult) -> list[tuple[str, str]]:
    """(subtask, `accepted` or the reason of its rejection), in order."""
    return [(judged.subtask, judged.reason or "accepted") for judged in events(result, Judged)]


def stages(result: TrialResult) -> dict[int, list[str]]:
    """Each fault's way, by its number."""
    way: dict[int, list[str]] = {}
    for event in events(result, Faulted):
        way.setdefault(event.fault, []).append(event.stage)
    return way
