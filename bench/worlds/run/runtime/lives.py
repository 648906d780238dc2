"""A trial in a world: the architecture works over all its restarts, then the world's end is recorded."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from bench.common.errors import CallFailed, GaveUp
from bench.record.world_events import WorldEnded
from bench.run.models.base import Reply
from bench.run.trial.trial import Surroundings, Trial
from bench.worlds.run.environment import World
from bench.worlds.run.runtime.acting import Acting
from bench.worlds.run.runtime.actions import WorldActions
from bench.worlds.run.runtime.effects import ToolEffect
from bench.worlds.run.runtime.process import Crashed

MAX_LIVES = 50
"""The most processes of one trial's agent. Each process after the first follows a crash."""


class WorldSurroundings(Surroundings):
    """A world in which a trial's architecture acts. The trial closes `world`."""

    def __init__(self, world: World, trial: Trial, **acting: Any):
        self.world, self.acting = world, Acting(world, trial.schedule, trial.clock, trial.log, **acting)
        self.actions: WorldActions = WorldActions(self.acting, trial)

    def before_call(self) -> None:
        """Raise Crashed if the agent's process is to die now."""
        self.acting.process.step()

    def broken_off(self, reply: Reply, call: int) -> CallFailed | None:
        return self.acting.mid_reply(reply, call)

    async def run_architecture(self, trial: Trial, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start the architecture, and start it again on the same world and store each time that its process dies. Raises GaveUp
        if it dies too often, and any other error that ends a process."""
        async with self.actions.lasting:
            for _ in range(MAX_LIVES):
                failed: BaseException | None = None
                try:
                    await trial.clock.run(work())
                except (Exception, Crashed, BaseExceptionGroup) as error:
                    failed = error
                if not self.acting.process.note_end():
                    if failed:
                        raise failed
                    return
                (self.actions.agent or trial).drop_process_state(self.acting.last_crash)
                self.acting.process.restart()
            raise GaveUp(("the agent",), f"died {MAX_LIVES} times")

    def end(self, trial: Trial, stopped: bool) -> Any:
        """Let the world come to its end. Return its content for the grader; None if the trial was stopped."""
        trial.log_decisions()
        self.acting.end()
        return None if stopped else self.world.snapshot().content

    def close(self) -> None:
        self.world.close()


def world_digest(events: Iterable[object]) -> str:
    """Return the digest of the text that contains the world; "" if the world never ended."""
    return next((event.kept for event in events if isinstance(event, WorldEnded)), "")


def around(trial: Trial, environment: Any) -> WorldSurroundings:
    """Make the world of a trial."""
    keeps_past = any(isinstance(effect, ToolEffect) and effect.needs_past for effect in trial.schedule.effects)
    return WorldSurroundings(World(environment, drawn_from=trial.key.drawn_from, keeps_past=keeps_past), trial)
