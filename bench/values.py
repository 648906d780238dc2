"""Dataclasses that are frozen for the type checker, and made as fast as any.

What `dataclasses` freezes sets each field by a call of `object.__setattr__`, which takes several times as long. A call to a
model makes some forty values, so that this would be a tenth of our own time.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, eq: bool = True) -> Any:
        """Where it is `frozen`, mypy lets nobody set a field, and values are hashed by what they hold."""
        return dataclasses.dataclass(cls, eq=eq, unsafe_hash=frozen and eq)


__all__ = ["dataclass"]
