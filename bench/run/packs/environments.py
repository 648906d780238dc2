"""The kinds of environments of a pack's task. An entry names the code of its kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from bench.common.registry import Part, Registry, attribute_at
from bench.scenario import Json, TaskEnvironment


@dataclass(frozen=True)
class EnvironmentPart(Part):
    """A kind of environment, by its modules, which are imported when they are needed.

    pack        the module for packs (`EnvironmentForPacks`)
    trial       the module for a trial: `around(trial, environment)` makes its surroundings, and `world_digest(events)` returns
                the digest of the text that holds the environment at the end
    simulated   the module for a simulated model: `next_reply(...)` makes its next tool calls (`bench.run.models.simulated`)
    bank        the module that reads a run as a bank: `load_bank(folder, scenarios)` for replies, `load_learning(folder)` for
                repairs
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


class EnvironmentForPacks(Protocol):
    """The functions of a kind of environment that packs need."""

    def refuse(self, environment: Any, where: str) -> None:
        """Refuse an environment that cannot be used.

        Args:
            environment: What the pack declares.
            where: The file that declares it, for the message.

        Raises:
            PackError: The first thing that is wrong with it.
        """

    def declaration(self, environment: Any) -> Json:
        """Return all that determines what can happen in an environment, as JSON.

        Args:
            environment: What the pack declares.

        Returns:
            JSON.
        """

    def targets(self, environment: Any, point: str, on: str) -> Iterable[str]:
        """Return the names that a fault can strike.

        Args:
            environment: What the pack declares.
            point: The fault's point.
            on: Which calls of tools the effect can strike.

        Returns:
            Names, as a config's `tool` or `event` has them.
        """

    def content_to_grade(self, content: bytes) -> Any:
        """Return the grader's argument for an environment that has ended.

        Args:
            content: The environment's content at the end.

        Returns:
            The argument of the grader.
        """

    def restore(self, text: str) -> Any:
        """Return the grader's argument for an environment that was stored as a text.

        Args:
            text: The text.

        Returns:
            The argument of the grader.

        Raises:
            BenchError: The text holds no environment.
        """

    def right_end(self, environment: Any) -> Any:
        """Return the grader's argument after the series of events that the pack declares as right.

        Args:
            environment: What the pack declares.

        Returns:
            The argument of the grader.
        """


def of_packs(environment: TaskEnvironment) -> EnvironmentForPacks:
    """Return the functions that packs need for an environment of this kind.

    Args:
        environment: What the pack declares.

    Returns:
        The kind's implementation.
    """
    return cast(EnvironmentForPacks, attribute_at(ENVIRONMENTS[environment.part].pack))
