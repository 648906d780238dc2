"""The kinds of environments that a pack's task may stand in. A wing registers what is done with its kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from bench.registry import Part, Registry, attribute_at
from bench.scenario import Json, TaskEnvironment


@dataclass(frozen=True)
class EnvironmentPart(Part):
    """A kind of environment, by its modules, which are imported where they are asked for.

    pack        what packs need of it (`OfPacks`)
    trial       what a trial needs: `around(trial, environment)` makes its surroundings, and `kept(events)` is the digest of the
                text that the environment was kept in at the end
    simulated   what a simulated model needs: `working(...)` makes its next calls of tools (`bench.models.simulated`)
    booked      a function from a trial's events to what of them does not add up, in words; None where all does
    shown       what is shown of a trial (`bench.report.surroundings`)
    checked     what `bench check` asks: `problems_of_reference(hooks)` and `problems_of_wrong(hooks)`
    bank        reads a run as a bank: `load_bank(folder, scenarios)` of replies, `load_learning(folder)` of repairs
    """

    pack: str = ""
    trial: str = ""
    simulated: str = ""
    booked: str = ""
    shown: str = ""
    checked: str = ""
    bank: str = ""

    @property
    def modules(self) -> Sequence[str]:
        return (self.pack, self.trial, self.simulated)


ENVIRONMENTS = Registry("environment", EnvironmentPart)


class OfPacks(Protocol):
    def refuse(self, environment: Any, where: str) -> None:
        """Raise PackError for the first thing that makes the environment unusable."""

    def declared(self, environment: Any) -> Json:
        """Return all that determines what can happen in it."""

    def targets(self, environment: Any, point: str, on: str) -> Iterable[str]:
        """Return the names of what a fault at this point can strike."""

    def ended(self, content: bytes) -> Any:
        """Return what a grader is given of an environment that ended with this content."""

    def restored(self, kept: str) -> Any:
        """Return the same of the text that it was kept in. Raises BenchError where that holds none."""

    def right_end(self, environment: Any) -> Any:
        """Return the same where the pack's right course was taken."""


def of_packs(environment: TaskEnvironment) -> OfPacks:
    return cast(OfPacks, attribute_at(ENVIRONMENTS[environment.part].pack))
