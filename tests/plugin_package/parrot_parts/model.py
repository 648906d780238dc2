"""A kind of model: it says the references, at a pace of its own."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bench.run.models.making import Making
from bench.run.models.model_part import BaseModelEntry, ModelPart
from bench.run.models.simulated import SimulatedModel, SimulatedSettings


class ParrotEntry(BaseModelEntry):
    """A model that says the packs' references."""

    kind: Literal["parrot"]
    seconds: float = Field(0.1, ge=0.0)
    """Simulated seconds that every call takes."""


def made(settings: ParrotEntry, of: Making) -> SimulatedModel:
    return SimulatedModel(of.name, SimulatedSettings(wrapping=False, seconds_per_call=settings.seconds), of.scenarios)


PART = ModelPart("parrot", ParrotEntry, "parrot_parts.model:made")
