"""Dataclasses that are frozen only for the type checker and are fast to create, and properties that are computed once.

A frozen class of `dataclasses` sets each field by `object.__setattr__`, which takes several times as long. A call to a model
makes about forty values, so this would be a tenth of our own time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
    from functools import cached_property as kept
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, eq: bool = True) -> Any:
        """If `frozen`, mypy refuses to set a field, and values are hashed by their content, or by the class's `__hash__`."""

        def decorate(cls: type) -> type:
            return dataclasses.dataclass(cls, eq=eq, unsafe_hash=frozen and eq and "__hash__" not in vars(cls))

        return decorate(cls) if cls else decorate

    class kept:  # noqa: N801  it replaces `functools.cached_property`, which takes a lock before Python 3.12
        def __init__(self, make: Callable[[Any], Any]):
            self._make, self.__doc__ = make, make.__doc__

        def __set_name__(self, _: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, _: type | None = None) -> Any:
            if instance is None:
                return self
            value = vars(instance)[self._name] = self._make(instance)
            return value


__all__ = ["dataclass", "kept"]
