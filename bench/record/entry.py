"""The base classes of all tables of a config, and of all parts of a manifest."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationInfo, ValidatorFunctionWrapHandler

MAX_ENTRIES = 1_000
"""The most tables of one kind, names in one list, and attempts at one subtask."""
STORED = {"stored": True}
"""The validation context for a manifest. The names in its config need not be installed, known to this version, or allowed by
today's patterns."""


def unless_stored(value: object, checked: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """Return a value. Its pattern is checked only if a person wrote it in a config, and not if it comes from a manifest."""
    return value if info.context == STORED and isinstance(value, str) else checked(value)


class ConfigEntry(BaseModel):
    """A table of a config. Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ManifestPart(BaseModel):
    """A part of a manifest. Unknown keys, which a later version can have written, are kept."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, ser_json_inf_nan="constants")

    @property
    def shown(self) -> dict[str, Any]:
        """The values that were given, not the defaults, as JSON."""
        return self.model_dump(mode="json", exclude_unset=True)
