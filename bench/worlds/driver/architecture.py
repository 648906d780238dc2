"""An architecture that is a command: for the trial it is one like any other, and is called again after each crash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.runtime.workbench import Workbench
from bench.scenario import Task
from bench.worlds.driver.command import Bounds, Command, command_of
from bench.worlds.driver.command_session import CommandSession, opened


class CommandArchitecture:
    def __init__(self, command: Command):
        self.command, self.digest, self.versions = command, command.digest, command.versions

    async def __call__(self, task: Task, workbench: Workbench) -> None:
        """One life of it. Raises as `Place.live` does."""
        place: CommandSession = await workbench.world.lasting.get("place", lambda: opened(self.command, task, workbench))
        await place.live()


def of_command(
    words: Sequence[str],
    folder: Path | None,
    env: Mapping[str, str],
    where: str,
    *,
    files: Sequence[Path],
    packages: Sequence[str],
    seconds: float,
    model_calls: int | None,
) -> CommandArchitecture:
    """Make the architecture that a command is. Raises ConfigError, which begins with `where`, where it cannot be one."""
    return CommandArchitecture(command_of(words, folder, env, Bounds(seconds, model_calls), where, files, packages))
