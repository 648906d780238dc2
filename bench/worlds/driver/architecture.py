"""An architecture that is a command: for the trial it is one like any other, and is called again after each crash."""

from __future__ import annotations

from bench.runtime.workbench import Workbench
from bench.scenario import Task
from bench.worlds.driver.command import Command
from bench.worlds.driver.place import Place, opened


class CommandArchitecture:
    def __init__(self, command: Command):
        self.command, self.digest, self.versions = command, command.digest, command.versions

    async def __call__(self, task: Task, workbench: Workbench) -> None:
        """One life of it. Raises as `Place.live` does."""
        place: Place = await workbench.world.lasting.get("place", lambda: opened(self.command, task, workbench))
        await place.live()
