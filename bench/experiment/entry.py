"""What every table of a config has in common, and every part of a manifest."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationInfo, ValidatorFunctionWrapHandler

MOST = 1_000
"""Tables of one kind, names in one list, attempts at one subtask."""
STORED = {"stored": True}
"""The context in which a manifest is read: what its config names need not be installed here, nor be known to this version, nor
be a name that this version takes."""


def unless_stored(value: object, checked: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """Hold a text to its pattern only where a person wrote it."""
    return value if info.context == STORED and isinstance(value, str) else checked(value)


class ConfigEntry(BaseModel):
    """A table that a person writes. A key that it does not have is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ManifestPart(BaseModel):
    """A part of a manifest. A later version may have written further keys, which stay beside those that are known."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, ser_json_inf_nan="constants")

    @property
    def shown(self) -> dict[str, Any]:
        """What was given, as JSON has it."""
        return self.model_dump(mode="json", exclude_unset=True)
