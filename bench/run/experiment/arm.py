"""The architectures and arms of an experiment, with everything that their trials need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from bench.common.values import dataclass
from bench.record.form import Form
from bench.record.policy import LearnedPolicy
from bench.run.architectures.part import Architecture, ArchitecturePart
from bench.run.architectures.registry import OUTSIDE
from bench.run.models.base import Model
from bench.run.trial.faults import FaultPlan
from bench.run.trial.trial import Settings
from bench.scenario import Scenario


@dataclass(frozen=True)
class ResolvedArchitecture:
    """An architecture as one config runs it. A variant has its own name.

    part      the entry of the architecture
    work      the function of the architecture, in the form that the config asks for
    digest    the digest of its code
    versions  the versions of the packages that only this architecture needs
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

    @property
    def is_command(self) -> bool:
        """Whether the architecture is a user's command, which runs as a process of its own."""
        return self.part is OUTSIDE["command"]


@dataclass(frozen=True)
class ResolvedArm:
    """One arm of an experiment, for one instance of its scenario."""

    scenario: Scenario
    architecture: ResolvedArchitecture
    model: Model
    plan: FaultPlan
    settings: Settings
