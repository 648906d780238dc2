"""What a config's names stand for, looked up once: an architecture as it is run, and an arm with all that its trials need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.architectures.form import Form
from bench.architectures.part import Architecture, ArchitecturePart
from bench.architectures.policy import LearnedPolicy
from bench.models.base import Model
from bench.runtime.faults import FaultPlan
from bench.runtime.trial import Settings
from bench.scenario import Scenario


@dataclass(frozen=True)
class ResolvedArchitecture:
    """An architecture as one config runs it, under a name of its own where it is a variant.

    part      what it is and can
    work      its function, in the form that the config asks for
    digest    of its code
    versions  of the packages that it stands on, beside those that all do
    """

    name: str
    part: ArchitecturePart
    work: Architecture
    settings: Settings
    digest: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    parallel: bool = False
    form: Form | None = None
    policy: LearnedPolicy | None = None


@dataclass(frozen=True)
class ResolvedArm:
    """One arm of an experiment, at one instance of its scenario."""

    scenario: Scenario
    architecture: ResolvedArchitecture
    model: Model
    plan: FaultPlan
    settings: Settings
