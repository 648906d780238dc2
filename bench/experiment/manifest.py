"""What a run keeps about itself, written once when it begins."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.answers.formats import DEFAULT
from bench.experiment.files import FORMAT
from bench.experiment.matrix import Matrix, answers_by_reference
from bench.experiment.provenance import code_version, machine, now, package_versions
from bench.models.base import Model
from bench.models.recorded import RecordedModel
from bench.models.routed import answerers
from bench.runtime.drafts import THINK
from bench.sandbox import guards
from bench.scenario import Scenario
from bench.tokens import TOKENIZER, count_tokens


def manifest_of(matrix: Matrix, name: str, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The manifest of a run that begins now. It holds no key, no path and no host name of this machine; `extra` is what the
    run's study wants kept."""
    return {
        "format": FORMAT,
        "name": name,
        "started": now(),
        "config": matrix.config.model_dump(mode="json", exclude={"model"}),
        "models": {name: {**model.parameters, **_asked(matrix, name)} for name, model in matrix.models.items()},
        "concurrency": {name: model.concurrency for name, model in matrix.models.items()},
        **_recordings(matrix.models.values()),
        "architectures": {name: one.digest for name, one in matrix.architectures.items()},
        "parts": dict(matrix.parts),
        "scenarios": {name: {**_pack(instances), **_reference(instances, matrix)} for name, instances in matrix.packs.items()},
        "tokenizer": TOKENIZER,
        "code": code_version(),
        "packages": {**package_versions(), **_own_packages(matrix)},
        "machine": machine(),
        "sandbox": guards().said(),
        **(extra or {}),
    }


def _own_packages(matrix: Matrix) -> dict[str, str]:
    """The versions of the packages that single architectures of this run stand on."""
    each = (one.versions for one in matrix.architectures.values())
    return {name: version for versions in each for name, version in sorted(versions.items())}


def _recordings(models: Iterable[Model]) -> dict[str, dict[str, Any]]:
    """What the recordings went through that this run's models answer from, by model (`bench.experiment.history`)."""
    recorded = (one for one in itertools.chain.from_iterable(map(answerers, models)) if isinstance(one, RecordedModel))
    histories = {model.name: model.history for model in recorded}
    return {"recordings": histories} if histories else {}


def _asked(matrix: Matrix, model: str) -> dict[str, Any]:
    """How a model is asked to answer, and read, where that is not the default."""
    asked = {} if (answer_format := matrix.formats[model]) == DEFAULT else {"answer_format": answer_format}
    tags = [list(pair) for pair in matrix.config.tags_of(model) if pair not in THINK]
    return {**asked, **({"draft_tags": tags} if tags else {})}


def _pack(instances: Sequence[Scenario]) -> dict[str, Any]:
    """What is kept of a pack. `asked` and `graded_by` are digests over all its instances in this run; by
    those of `asked_by_instance` a run of fewer instances is known to ask the same. `baseline` are the grades
    of keyword rules without any model, the floor under every score in the run; None where nothing is graded."""
    first = instances[0]
    return {
        "variant": first.variant,
        "instances": [scenario.instance for scenario in instances],
        "asked": joint_digest([scenario.asked for scenario in instances]),
        "asked_by_instance": {scenario.instance: scenario.asked for scenario in instances},
        "graded_by": joint_digest([scenario.graded_by for scenario in instances]),
        "subtasks": [subtask.name for subtask in first.task.subtasks],
        "document_tokens": round(sum(map(_document_tokens, instances)) / len(instances)),
        "stages": [[subtask.name for subtask in stage] for stage in first.task.stages],
        "baseline": _baseline(instances) if first.graded else None,
    }


def _reference(instances: Sequence[Scenario], matrix: Matrix) -> dict[str, str]:
    """The digest of the references, where trials of this run are determined by them."""
    own = [spec for spec in matrix.specs if spec.scenario == instances[0].name]
    if not any(answers_by_reference(matrix.models[spec.model], spec.plan) for spec in own):
        return {}
    return {"reference": joint_digest([scenario.reference_digest for scenario in instances])}


def joint_digest(digests: Sequence[str]) -> str:
    """The digest of the sole instance; of several, one over all."""
    return digests[0] if len(digests) == 1 else hashlib.sha256("\0".join(digests).encode()).hexdigest()[:20]


def _document_tokens(scenario: Scenario) -> int:
    return sum(map(count_tokens, scenario.task.documents.values()))


def _baseline(instances: Sequence[Scenario]) -> dict[str, float]:
    """How many instances keyword rules solve, of how many, and their mean score."""
    answers = [(scenario, scenario.baseline(scenario.task.documents)) for scenario in instances]
    grades = [scenario.grade_outputs(answer) for scenario, answer in answers if answer]  # an empty answer scores nothing
    solved = sum(grade.correct for grade in grades)
    return {"solved": solved, "of": len(answers), "score": sum(grade.score for grade in grades) / len(answers)}
