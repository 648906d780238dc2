"""Make the manifest of a run when it begins."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from bench.common.tokens import TOKENIZER, count_tokens
from bench.record.config import StoredConfig
from bench.record.described import Described, DescribedArchitecture, DescribedEffect
from bench.record.files import FORMAT
from bench.record.formats import DEFAULT
from bench.record.history import History
from bench.record.manifest import BaselineGrades, Manifest, ManifestPack
from bench.record.model_parameters import ModelParameters
from bench.record.provenance import machine, now, package_versions
from bench.run.architectures.registry import ARCHITECTURES
from bench.run.experiment.code import code_version
from bench.run.experiment.matrix import Matrix, answers_by_reference
from bench.run.experiment.untrusted import Permission
from bench.run.models.base import Model
from bench.run.models.recorded import RecordedModel
from bench.run.models.routed import answerers
from bench.run.sandbox import guards
from bench.run.trial.drafts import KNOWN_TAGS
from bench.run.trial.effects import EFFECTS, CallEffect, TextEffect
from bench.scenario import Scenario


def manifest_of(
    matrix: Matrix, name: str, prepared: Mapping[str, JsonValue] | None = None, permission: Permission | None = None
) -> Manifest:
    """Return the manifest of a run that begins now. `prepared` holds the data of the run's study, and `permission` says how
    answers are graded."""
    config = matrix.config
    return Manifest(
        format=FORMAT,
        name=name,
        started=now(),
        config=StoredConfig.model_validate(config.model_dump(exclude={"model"})),
        models={name: _parameters(model, matrix, name) for name, model in matrix.models.items()},
        concurrency={name: model.concurrency for name, model in matrix.models.items()},
        recordings=_recordings(matrix.models.values()),
        architectures={name: architecture.digest for name, architecture in matrix.architectures.items()},
        described=_descriptions(matrix),
        policies={name: architecture.policy for name, architecture in matrix.architectures.items() if architecture.policy},
        parts={
            **{f"effect {name} at {point}": digest for (name, point), digest in matrix.effects.items()},
            **{f"model {name}": digest for name, digest in matrix.kinds.items()},
            **{f"environment {name}": digest for name, digest in matrix.environments.items()},
        },
        scenarios={name: _pack(instances, matrix) for name, instances in matrix.packs.items()},
        tokenizer=TOKENIZER,
        code=code_version(),
        packages={
            **package_versions(),
            **matrix.versions,
            **{name: version for part in matrix.architectures.values() for name, version in sorted(part.versions.items())},
        },
        machine=machine(),
        sandbox=guards().as_json(),
        unguarded=permission.unguarded if permission else None,
        stored_grades=permission.stored_grades if permission else {},
        prepared=prepared or {},
        portion=matrix.portion,
    )


def _descriptions(matrix: Matrix) -> Described:
    """Return what a reader of the run must know about its architectures and effects."""
    bases = dict.fromkeys(map(matrix.config.base, matrix.config.architectures))
    effects = {(name, point): EFFECTS[name, point] for name, point in matrix.effects}
    return Described(
        architectures={
            base: DescribedArchitecture(
                makes_own_calls=part.makes_own_calls,
                is_instrument=part.is_instrument,
                structure=part.structure,
                limits=part.limits,
            )
            for base in bases
            if (part := ARCHITECTURES.by_key.get(base))
        },
        effects={
            f"{name} at {point}": DescribedEffect(
                fails=isinstance(effect, CallEffect) and effect.fails,
                breaks_form=isinstance(effect, TextEffect) and effect.breaks_form,
            )
            for (name, point), effect in effects.items()
        },
    )


def _recordings(models: Iterable[Model]) -> dict[str, History]:
    """Return the history of each recording from which this run's models answer, by model."""
    answering = itertools.chain.from_iterable(map(answerers, models))
    histories = {model.name: model.history for model in answering if isinstance(model, RecordedModel)}
    return {name: history for name, history in histories.items() if isinstance(history, History)}


def _parameters(model: Model, matrix: Matrix, name: str) -> ModelParameters:
    """Return a model's parameters, with its answer format and draft tags if they are not the default."""
    parameters = dict(model.parameters)
    if (answer_format := matrix.config.format_of(name)) != DEFAULT:
        parameters["answer_format"] = answer_format
    if tags := [pair for pair in matrix.config.tags_of(name) if pair not in KNOWN_TAGS]:
        parameters["draft_tags"] = tags
    return ModelParameters.of(parameters)


def _pack(instances: Sequence[Scenario], matrix: Matrix) -> ManifestPack:
    """Return the manifest's entry of a pack."""
    first, several = instances[0], instances if len(instances) > 1 else ()
    plans = [plan for (key, _), plan in matrix.plans.items() if matrix.scenarios[key].name == first.name]
    by_reference = any(answers_by_reference(model, plan) for model in matrix.models.values() for plan in plans)
    tokens = (count_tokens(text) for scenario in instances for text in scenario.task.documents.values())
    return ManifestPack(
        variant=first.variant,
        instances=tuple(scenario.instance for scenario in instances),
        asked=joint_digest([scenario.asked for scenario in instances]),
        asked_by_instance={scenario.instance: scenario.asked for scenario in instances},
        graded_by=joint_digest([scenario.graded_by for scenario in instances]),
        subtasks=tuple(subtask.name for subtask in first.task.subtasks),
        document_tokens=round(sum(tokens) / len(instances)),
        stages=tuple(tuple(subtask.name for subtask in stage) for stage in first.task.stages),
        baseline=_baseline(instances) if first.graded else None,
        reference=joint_digest([scenario.reference_digest for scenario in instances]) if by_reference else None,
        graded_by_instance={scenario.instance: scenario.graded_by for scenario in several},
        reference_by_instance={scenario.instance: scenario.reference_digest for scenario in several if by_reference},
    )


def joint_digest(digests: Sequence[str]) -> str:
    """Return the digest of the only instance, or one digest over the digests of all instances."""
    return digests[0] if len(digests) == 1 else hashlib.sha256("\0".join(digests).encode()).hexdigest()[:20]


def _baseline(instances: Sequence[Scenario]) -> BaselineGrades:
    """Return the grades of the pack's baseline answers."""
    answers = [(scenario, scenario.baseline(scenario.task.documents)) for scenario in instances]
    grades = [scenario.grade_outputs(answer) for scenario, answer in answers if answer]  # an empty answer scores nothing
    solved = sum(grade.correct for grade in grades)
    return BaselineGrades(solved=solved, of=len(answers), score=sum(grade.score for grade in grades) / len(answers))
