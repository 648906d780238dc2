"""What the probe asks of a store, whatever kind it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from bench.record.probe.rows import RowDifference


class Store(Protocol):
    """One worker's copy of a store that the owner named. A copy is made by the probe, has a name that says so, and is removed.

    name         the owner's name for it
    replaces     what stands for the owner's store in commands, arguments, configs and variables (a path, a DSN) -> what stands
                 there for the copy
    environment  variables that hand the copy over, as the owner asked
    """

    name: str

    @property
    def replaces(self) -> Mapping[str, str]: ...

    @property
    def environment(self) -> Mapping[str, str]: ...

    async def make(self) -> None:
        """Make the copy, and the state to which it is reset. Raises ConfigError in one line; leaves nothing behind then."""

    async def reset(self) -> None:
        """Bring the copy back to its first state. Nothing may have it open."""

    async def digest(self) -> str:
        """Return the digest of its content. Equal content has one digest, whatever bytes lie on disk."""

    async def differences(self, most: int) -> tuple[Sequence[RowDifference], int]:
        """Return the rows that differ from the first state, at most `most`, and how many more there are."""

    async def remove(self) -> None:
        """Remove the copy. This can be called again."""
