"""An architecture whose work a user's command does. A trial uses it like any other architecture and calls it again after each
crash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.driver.command import Bounds, Command, command_of
from bench.worlds.run.driver.command_session import CommandSession, open_session


class CommandArchitecture:
    """The architecture of one command. Its digest and versions are the command's."""

    def __init__(self, command: Command):
        self.command, self.digest, self.versions = command, command.digest, command.versions

    async def __call__(self, task: Task, workbench: Workbench) -> None:
        """Run one process of the agent. Raises as `CommandSession.run_process` does."""
        lasting = workbench.world.lasting
        session: CommandSession = await lasting.get("session", lambda: open_session(self.command, task, workbench))
        await session.run_process()


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
    kills_caller: bool,
) -> CommandArchitecture:
    """Return the architecture for a command. Raises ConfigError, with `where` at its start, if the command cannot be used."""
    bounds = Bounds(seconds, model_calls)
    return CommandArchitecture(command_of(words, folder, env, bounds, where, files, packages, kills_caller))
