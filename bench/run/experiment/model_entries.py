"""The tables of models in a config, and the core's kinds of models: simulated, recorded, or routed to others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from bench.common.registry import Registry
from bench.run.models.model_part import BaseModelEntry, ModelPart
from bench.run.models.recorded import RecordedSettings
from bench.run.models.routed import RoutedSettings
from bench.run.models.simulated import SimulatedSettings


class SimulatedEntry(SimulatedSettings, BaseModelEntry):
    kind: Literal["simulated"]


class RecordedEntry(RecordedSettings, BaseModelEntry):
    kind: Literal["recorded"]

    @property
    def replays(self) -> Path | None:
        return self.run


class RoutedEntry(RoutedSettings, BaseModelEntry):
    kind: Literal["routed"]

    @property
    def passes_on_to(self) -> tuple[str, ...]:
        return self.targets


OURS = (
    ModelPart("simulated", SimulatedEntry, "bench.run.models.simulated:make_model"),
    ModelPart("recorded", RecordedEntry, "bench.run.models.recorded:make_model"),
    ModelPart("routed", RoutedEntry, "bench.run.models.routed:make_model"),
)
MODELS = Registry("kind of model", ModelPart, plural="models")


class ReadEntry:
    """Validates a model's table with the settings of its kind."""

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(cls._read)

    @classmethod
    def __get_pydantic_json_schema__(cls, _: CoreSchema, __: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "object"}

    @staticmethod
    def _read(table: object) -> BaseModelEntry:
        """Return a model's table as an entry of its kind. Raises ValueError for a missing or an unknown kind."""
        if isinstance(table, BaseModelEntry):
            return table
        kind = table.get("kind") if isinstance(table, Mapping) else None
        if not isinstance(kind, str):
            raise ValueError(f'says no kind; add kind = "...", one of {", ".join(MODELS.names)}')
        if kind not in MODELS:
            raise ValueError(MODELS.unknown(kind))
        return MODELS[kind].settings.model_validate(table)


ModelEntry = Annotated[BaseModelEntry, ReadEntry]
