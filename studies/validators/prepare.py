"""The quality of a pack's validators: corrupted reference outputs are checked against schema and checks.

No model is asked: only the verifier is measured. An accepted mutant *survives*. The grader says whether it does harm: it grades
the reference answer with the mutant in its place.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

from bench.common.seeding import draw_for
from bench.run.experiment.matrix import Matrix
from bench.run.trial.effects import EFFECTS, Target, TextEffect, dump
from bench.run.trial.reply import parts_of
from bench.run.trial.verification import Rejected, Verdict, insufficient, judge
from bench.scenario import Json, Output, Scenario, Subtask

from .mutants import KEPT, Mutants, Survivor

DRAWS = 100
"""Mutants of each subtask's output by each effect. The same mutant can be drawn more than once."""
MOST, LONGEST = 3, 60
"""Changes of a mutant that are kept, and characters of each value."""


def prepare(matrix: Matrix) -> dict[str, Any]:
    """Draw the mutants of the matrix's packs, when a run begins."""
    return {"mutants": KEPT.dump_python(mutants_of(matrix.scenarios.values(), matrix.config.seed), mode="json")}


def mutants_of(scenarios: Iterable[Scenario], seed: int, draws: int = DRAWS) -> list[Mutants]:
    """Return the mutants of every subtask by every content effect. The same seed gives the same mutants."""
    return [
        _mutants(scenario, subtask, effect, seed, draws)
        for scenario in scenarios
        if scenario.graded
        for subtask in scenario.task.subtasks
        for effect in EFFECTS
        if isinstance(effect, TextEffect)
    ]


def _mutants(scenario: Scenario, subtask: Subtask, effect: TextEffect, seed: int, draws: int) -> Mutants:
    place = (seed, "mutant", scenario.name, subtask.name, effect.name)
    texts = Counter(
        text for number in range(draws) if (text := _mutant(scenario, subtask, effect, draw_for(*place, number))) is not None
    )
    caught: Counter[str] = Counter()
    survivors = []
    for text, times in texts.items():
        verdict = _verdict(scenario, subtask, text)
        if isinstance(verdict, Rejected):
            caught[verdict.reason] += times
        else:
            survivors.append(_survivor(scenario, subtask, text, times, verdict))
    return Mutants(scenario.name, subtask.name, effect.name, sum(texts.values()), dict(caught), tuple(survivors))


def _mutant(scenario: Scenario, subtask: Subtask, effect: TextEffect, draw: Random) -> str | None:
    value = scenario.reference[subtask.name]
    target = Target(dump(value), value, subtask.output, None, scenario.wrong_outputs.get(subtask.name, ()))
    return effect.strike(target, draw)


def _verdict(scenario: Scenario, subtask: Subtask, text: str) -> Verdict:
    """Judge a reply with this text, given the reference for all that the subtask reads."""
    task, reference = scenario.task, scenario.reference
    earlier = {name: task.subtask(name).output.model_validate(reference[name]) for name in subtask.reads if name in reference}
    values = {name: part.value for name, part in parts_of(text, "stop", [subtask]).items()}
    return judge([subtask], values, task.documents, earlier)[subtask.name]


def _survivor(scenario: Scenario, subtask: Subtask, text: str, times: int, output: Output) -> Survivor:
    weak = insufficient(subtask, output)
    value = json.loads(text)
    grade = scenario.grade_outputs({**scenario.reference, subtask.name: value})
    changes = list(_changes(scenario.reference[subtask.name], value))
    more = f"; and {len(changes) - MOST} more" if len(changes) > MOST else ""
    return Survivor("; ".join(changes[:MOST]) + more, times, weak.detail if weak else "", grade.correct)


def _changes(before: Json, after: Json, path: str = "") -> Iterator[str]:
    """Yield each value that differs, with its place."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            if before.get(name) != after.get(name):
                yield from _changes(before.get(name), after.get(name), f"{path}.{name}" if path else name)
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield f"{path}: {len(before)} items -> {len(after)}"
        for place, (piece, other) in enumerate(zip(before, after, strict=False)):
            if piece != other:
                yield from _changes(piece, other, f"{path}[{place}]")
    else:
        yield f"{path}: {_short(before)} -> {_short(after)}"


def _short(value: Json) -> str:
    text = dump(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
