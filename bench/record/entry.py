"""The base of every table of a config, and of every part of a manifest."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationInfo, ValidatorFunctionWrapHandler

MOST = 1_000
"""The most tables of one kind, names in one list, and attempts at one subtask."""
STORED = {"stored": True}
"""The context in which a manifest is read: what its config names need not be installed, known to this version, or an allowed
name."""


def unless_stored(value: object, checked: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """Check a text's pattern only if a person wrote the text, and not if it comes from a manifest."""
    return value if info.context == STORED and isinstance(value, str) else checked(value)


class ConfigEntry(BaseModel):
    """A table of a config. An unknown key is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ManifestPart(BaseModel):
    """A part of a manifest. A later version can have written further keys, which are kept."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, ser_json_inf_nan="constants")

    @property
    def shown(self) -> dict[str, Any]:
        """The values that were given, as JSON."""
        return self.model_dump(mode="json", exclude_unset=True)
