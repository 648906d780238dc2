"""A trial in a world: the architecture works over all its lives, and then it is seen what became of the world."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from bench.errors import CallFailed, GaveUp
from bench.models.base import Reply
from bench.runtime.trial import Surroundings, Trial
from bench.worlds.environment import World
from bench.worlds.runtime.acting import Acting
from bench.worlds.runtime.actions import WorldActions
from bench.worlds.runtime.effects import ToolEffect
from bench.worlds.runtime.events import WorldEnded
from bench.worlds.runtime.process import Crashed

MOST_LIVES = 50
"""Processes of one trial's agent, each but the first after a crash."""


class InWorld(Surroundings):
    """A world that a trial's architecture acts in; `world` is closed with the trial."""

    def __init__(self, world: World, trial: Trial, **acting: Any):
        self.world, self.acting = world, Acting(world, trial.schedule, trial.clock, trial.log, **acting)
        self.actions: WorldActions = WorldActions(self.acting, trial)

    def before_call(self) -> None:
        """Raises Crashed where the agent's process is to die now."""
        self.acting.process.step()

    def broken_off(self, reply: Reply, call: int) -> CallFailed | None:
        return self.acting.mid_reply(reply, call)

    async def live(self, trial: Trial, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start the architecture, and again on the same world and the same store each time that it dies. Raises GaveUp where it
        dies too often, and whatever ends a life that is no death."""
        async with self.actions.lasting:
            for _ in range(MOST_LIVES):
                failed: BaseException | None = None
                try:
                    await trial.clock.run(work())
                except (Exception, Crashed, BaseExceptionGroup) as error:
                    failed = error
                if not self.acting.process.ended():
                    if failed:
                        raise failed
                    return
                trial.crashed(self.acting.last_crash)
                if self.actions.agent:
                    self.actions.agent.crashed(self.acting.last_crash)
                self.acting.process.restart()
            raise GaveUp(("the agent",), f"died {MOST_LIVES} times")

    def end(self, trial: Trial, stopped: bool) -> Any:
        """Let the world come to its end, and return its content, as its grader is given it."""
        trial.decisions()
        self.acting.end()
        return None if stopped else self.world.snapshot().content

    def close(self) -> None:
        self.world.close()


def kept(events: Iterable[object]) -> str:
    """Return the digest of the text that the world was kept in; "" where it never ended."""
    return next((event.kept for event in events if isinstance(event, WorldEnded)), "")


def around(trial: Trial, environment: Any) -> InWorld:
    """Make the world of a trial."""
    keeps_past = any(isinstance(effect, ToolEffect) and effect.needs_past for effect in trial.schedule.effects)
    return InWorld(World(environment, drawn_from=trial.key.drawn_from, keeps_past=keeps_past), trial)
