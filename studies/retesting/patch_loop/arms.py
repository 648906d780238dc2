"""The arms: after a change of the tree each says which results it still trusts. Tests without a trusted result run again.

A failed result runs again in every arm. So the arms differ in which *passes* they go on to believe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .suite import CallResult, FilesVersion

Trusts = Callable[[Sequence[CallResult], FilesVersion], bool]
"""(the kept results of one test, the latest last; the present version) -> whether the test is believed to pass."""


def nothing(_: Sequence[CallResult], __: FilesVersion) -> bool:
    """Believe no earlier result."""
    return False


def the_last(kept: Sequence[CallResult], _: FilesVersion) -> bool:
    """Believe the last result, whatever has changed since."""
    return bool(kept) and kept[-1].passed


def as_declared(kept: Sequence[CallResult], version: FilesVersion) -> bool:
    """Believe the latest result for which the declared files were the same as now."""
    return _latest(result for result in reversed(kept) if version.holds(result.declared))


def as_recorded(kept: Sequence[CallResult], version: FilesVersion) -> bool:
    """Believe the latest result for which all that its run relied on was the same as now."""
    return _latest(result for result in reversed(kept) if version.holds(result.recorded))


def _latest(results: Iterator[CallResult]) -> bool:
    result = next(results, None)
    return bool(result and result.passed)


@dataclass(frozen=True)
class RetestArm:
    """An arm: what it trusts, and whether its agent writes edits or whole files."""

    name: str
    trusts: Trusts
    whole_files: bool = False


ARMS = (
    RetestArm("regenerate", nothing, whole_files=True),
    RetestArm("rerun_everything", nothing),
    RetestArm("notebook", the_last),
    RetestArm("declared", as_declared),
    RetestArm("selective", as_recorded),
)
