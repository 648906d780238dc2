"""The descriptions of a run's architectures and effects. A manifest holds them, so that a report does not need their code.

Manifests of earlier versions lack them: `described.toml` has the descriptions of the parts that those versions had.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import Field

from bench.common.bounds import Lookup, Many
from bench.record.entry import ManifestPart

FILE = Path(__file__).with_name("described.toml")
UNTOLD = "nothing"


@dataclass(frozen=True)
class Structure:
    """The structure of an architecture, in words. A comparison of two architectures that differ in several of these aspects is
    no evidence about any single aspect.

    asks      how the task is asked
    verifies  when an output is verified
    repeats   what is asked again after a rejection
    tells     what the next prompt says of the rejection, unless a config's `repair` says that it tells nothing
    """

    asks: str
    verifies: str
    repeats: str
    tells: str = UNTOLD


class DescribedArchitecture(ManifestPart):
    """The description of an architecture, from its entry (`bench.run.architectures.part.ArchitecturePart`)."""

    makes_own_calls: bool = False
    is_instrument: bool = False
    structure: Structure | None = None
    limits: Many[str] = ()


class DescribedEffect(ManifestPart):
    """The description of a fault effect at one point, from its entry (`bench.run.trial.effects.Effect`)."""

    fails: bool = False
    """Each call that it strikes ends in a failure."""
    breaks_form: bool = False
    """What it strikes is no valid output, whatever the subtask."""


class Described(ManifestPart):
    """The descriptions of architectures by name, and of effects by name and point: `missing_field at output`."""

    architectures: Lookup[str, DescribedArchitecture] = Field(default_factory=dict)
    effects: Lookup[str, DescribedEffect] = Field(default_factory=dict)

    def effect(self, name: str, point: str) -> DescribedEffect:
        """Return the description of an effect; a description with all fields false if the effect is unknown."""
        return self.effects.get(f"{name} at {point}", DescribedEffect())


@cache
def described_earlier() -> Described:
    """Return the descriptions of the architectures and effects of earlier versions, whose manifests have none."""
    return Described.model_validate(tomllib.loads(FILE.read_text(encoding="utf-8")), strict=False)
