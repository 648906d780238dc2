"""The kinds of environments of a pack's task. An entry leads to the code for its kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from bench.common.registry import Part, Registry, attribute_at
from bench.scenario import Json, TaskEnvironment


@dataclass(frozen=True)
class EnvironmentPart(Part):
    """A kind of environment, by its modules, which are imported when they are needed.

    pack        what packs need (`OfPacks`)
    trial       what a trial needs: `around(trial, environment)` makes its surroundings, and `kept(events)` is the digest of the
                text that holds the environment at the end
    simulated   what a simulated model needs: `working(...)` makes its next tool calls (`bench.run.models.simulated`)
    bank        reads a run as a bank: `load_bank(folder, scenarios)` for replies, `load_learning(folder)` for repairs
    """

    pack: str = ""
    trial: str = ""
    simulated: str = ""
    bank: str = ""

    @property
    def modules(self) -> Sequence[str]:
        """Return the modules that hold its code."""
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
        """Return the grader's argument for an environment that has ended.

        Args:
            content: The environment's content at the end.

        Returns:
            The argument of the grader.
        """

    def restored(self, kept: str) -> Any:
        """Return the grader's argument for an environment that was kept as a text.

        Args:
            kept: The text.

        Returns:
            The argument of the grader.

        Raises:
            BenchError: The text holds no environment.
        """

    def right_end(self, environment: Any) -> Any:
        """Return the grader's argument after the pack's right course.

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
        The kind's implementation.
    """
    return cast(OfPacks, attribute_at(ENVIRONMENTS[environment.part].pack))
