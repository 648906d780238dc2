"""What a run keeps about itself, written once when it begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.architectures.registry import extras_of
from bench.experiment.matrix import Matrix
from bench.experiment.provenance import code_version, extra_versions, machine, now, package_versions
from bench.experiment.store import FORMAT
from bench.scenario import Scenario
from bench.tokens import TOKENIZER, count_tokens


def manifest_of(matrix: Matrix, name: str, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The manifest of a run that begins now. It holds no key, no path and no host name of this machine.

    `extra`: what else it must hold, for a study's sake.
    """
    return {
        "format": FORMAT,
        "name": name,
        "started": now(),
        "config": matrix.config.model_dump(mode="json", exclude={"model"}),
        "models": {name: model.parameters for name, model in matrix.models.items()},
        "concurrency": {name: model.concurrency for name, model in matrix.models.items()},
        "scenarios": {scenario.name: _scenario(scenario) for scenario in matrix.scenarios.values()},
        "ruler": TOKENIZER,
        "code": code_version(),
        "packages": {**package_versions(), **extra_versions(extras_of(map(matrix.config.base, matrix.config.architectures)))},
        "machine": machine(),
        **(extra or {}),
    }


def _scenario(scenario: Scenario) -> dict[str, Any]:
    """`baseline`: the grade of keyword rules without any model, the floor under every score in the run; None where nothing is
    graded."""
    baseline = scenario.grade_outputs(scenario.baseline(scenario.task.documents)) if scenario.graded else None
    return {
        "variant": scenario.variant,
        "digest": scenario.digest,
        "subtasks": [subtask.name for subtask in scenario.task.subtasks],
        "document_tokens": sum(map(count_tokens, scenario.task.documents.values())),
        "stages": [[subtask.name for subtask in stage] for stage in scenario.task.stages],
        "baseline": {"correct": baseline.correct, "score": baseline.score} if baseline else None,
    }
