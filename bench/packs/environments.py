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
        """Return the modules in which its code stands."""
        return (self.pack, self.trial, self.simulated)


ENVIRONMENTS = Registry("environment", EnvironmentPart)


class OfPacks(Protocol):
    """What packs need of a kind of environment."""

    def refuse(self, environment: Any, where: str) -> None:
        """Refuse an environment that cannot be used.

        Args:
            environment: What the pack declares.
            where: The file that declares it, for the message.

        Raises:
            PackError: The first thing that is wrong with it.
        """

    def declared(self, environment: Any) -> Json:
        """Return all that determines what can happen in an environment.

        Args:
            environment: What the pack declares.

        Returns:
            JSON.
        """

    def targets(self, environment: Any, point: str, on: str) -> Iterable[str]:
        """Return what a fault can strike.

        Args:
            environment: What the pack declares.
            point: The fault's point.
            on: Which calls of tools the effect can strike.

        Returns:
            Names, as a config's `tool` or `event` has them.
        """

    def ended(self, content: bytes) -> Any:
        """Return what a grader is given of an environment.

        Args:
            content: What it ended with.

        Returns:
            The argument of the grader.
        """

    def restored(self, kept: str) -> Any:
        """Return what a grader is given of an environment that was kept.

        Args:
            kept: The text that it was kept in.

        Returns:
            The argument of the grader.

        Raises:
            BenchError: The text holds no environment.
        """

    def right_end(self, environment: Any) -> Any:
        """Return what a grader is given where the pack's right course was taken.

        Args:
            environment: What the pack declares.

        Returns:
            The argument of the grader.
        """


def of_packs(environment: TaskEnvironment) -> OfPacks:
    """Return what packs need of the kind of an environment.

    Args:
        environment: What the pack declares.

    Returns:
        The wing's implementation.
    """
    return cast(OfPacks, attribute_at(ENVIRONMENTS[environment.part].pack))
