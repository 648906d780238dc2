"""A workload: a person's description of the work for an agent. `configs/workloads/returns.toml` is an example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from bench.common.errors import ConfigError, nearest
from bench.common.toml import read_toml
from bench.common.wording import first_violation
from bench.record.entry import ConfigEntry

Runtime = Literal["long-horizon", "autonomous", "conversational"]
DAY, HOUR = 24 * 60, 60


class WorkEntry(ConfigEntry):
    """The properties of the work."""

    lasts_minutes: float = Field(gt=0)
    """Minutes from the beginning of the work to its end, waiting included."""
    person_waits: bool = False
    """Somebody reads each answer and waits for it."""
    parts: int = Field(1, ge=1)
    """Pieces of the work that can go on side by side."""
    outside_effects: bool = True
    """The work changes something outside the agent."""
    cannot_be_undone: bool = False
    """Some of these changes cannot be taken back."""
    approvals: bool = False
    """Somebody has to approve some of the work."""
    log_is_truth: bool = False
    """The source of truth is a log of events that others read, not a row."""
    keys: bool = True
    """The tools take idempotency keys, so that the remedies of a pattern can be built."""


class EvidenceEntry(ConfigEntry):
    """The run in which the work was measured."""

    run: str = Field(max_length=300)
    """A run's name under results/ or reports/, or its folder."""
    scenario: str = Field(max_length=300)
    """The world of the run that is most like the work."""


class HeldOutEntry(EvidenceEntry):
    """A run that judges the advice. The advice does not use it."""

    plan: str = Field(max_length=300)
    """The fault plan under which the advice is judged."""


class WorkloadEntry(ConfigEntry):
    """A workload, in the form that its file has."""

    name: str = Field(min_length=1, max_length=100)
    runtime: Runtime | None = None
    """The kind of runtime. If it is not given, it follows from the properties of the work."""
    work: WorkEntry
    failures: dict[Annotated[str, Field(max_length=100)], Annotated[float, Field(ge=0)]] = Field(max_length=100, fail_fast=True)
    """Name of a fault plan of the run -> mean number of such failures in a run of the work."""
    evidence: EvidenceEntry
    held_out: HeldOutEntry | None = None

    @property
    def derived_runtime(self) -> Runtime:
        """The runtime that follows from the properties of the work."""
        if self.work.person_waits:
            return "conversational"
        return "long-horizon" if self.work.lasts_minutes >= DAY else "autonomous"


def read_workload(path: Path) -> WorkloadEntry:
    """Read a workload.

    Args:
        path: Its file.

    Returns:
        The workload.

    Raises:
        ConfigError: The file cannot be read, has an unknown key or a value that does not fit, or contradicts itself.
    """
    tables = read_toml(path)
    try:
        workload = WorkloadEntry.model_validate(tables)
    except ValidationError as error:
        violation = first_violation(error, "extra_forbidden", value=tables)
        if violation.kind == "extra_forbidden":
            table, _, key = violation.place.rpartition(".")
            raise ConfigError(f"{path}: unknown key '{violation.place}'; {nearest(key, _known_keys(table))}") from error
        raise ConfigError(f"{path}: {violation.line}") from error
    if contradiction := next(_contradictions(workload), ""):
        raise ConfigError(f"{path}: contradicts itself: {contradiction}")
    return workload


def _known_keys(table: str) -> list[str]:
    """Return the keys of a table."""
    tables: Mapping[str, type[ConfigEntry]] = {"work": WorkEntry, "evidence": EvidenceEntry, "held_out": HeldOutEntry}
    return list(tables.get(table, WorkloadEntry).model_fields)


def _contradictions(workload: WorkloadEntry) -> Iterator[str]:
    """Yield the contradictions in a workload."""
    work = workload.work
    if workload.runtime and workload.runtime != workload.derived_runtime:
        values = f"person_waits = {str(work.person_waits).lower()} and lasts_minutes = {work.lasts_minutes:g}"
        yield f"runtime = '{workload.runtime}', and {values} make it '{workload.derived_runtime}'; correct one"
    for key in ("cannot_be_undone", "approvals"):
        if getattr(work, key) and not work.outside_effects:
            yield f"work.{key} = true, and work.outside_effects = false: nothing is done there; correct one"
