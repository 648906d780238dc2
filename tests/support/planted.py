"""Weaknesses planted in a careful agent: each does harm under a schedule of failures of its own, and under no other.

The agent is the state machine with its remedies, which no failure harms. A weakness watches which calls of tools fail. Where
its failures come, it makes the effect again without a key: once after each of them but the last, and nine times after that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.record.form import Form
from bench.record.world_events import AGENT
from bench.run.architectures.part import Architecture
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.worlds.run.environment import Acted
from bench.worlds.run.patterns.state_machine import state_machine

A_LITTLE, MUCH = 1, 9
WEAKNESSES: Mapping[str, tuple[str, ...]] = {
    "an offer that fails once": ("publish_offer",),
    "a letter that fails twice": ("send_outreach", "send_outreach"),
    "a note that fails three times": ("note_crm", "note_crm", "note_crm"),
    "an opening and a closing that fail": ("open_renewal", "close"),
    "a draft that fails, and then its publication": ("draft_offer", "publish_offer"),
}
"""Weakness -> the tools whose failures it needs."""


class _Watched:
    """The world's actions, whose failures are counted."""

    def __init__(self, world: Any, needs: tuple[str, ...]):
        self._world, self._needs = world, list(needs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    async def act(self, tool: str, arguments: Any, key: str | None = None, **more: Any) -> Acted:
        acted: Acted = await self._world.act(tool, arguments, key, **more)
        if acted.outcome == "failed" and self._needs and tool == self._needs[0]:
            self._needs.pop(0)
            for _ in range(A_LITTLE if self._needs else MUCH):
                await self._world.act(tool, arguments, role=more.get("role", AGENT))
        return acted


class _Bench:
    """A workbench, whose world is watched."""

    def __init__(self, workbench: Workbench, needs: tuple[str, ...]):
        self._workbench, self.world = workbench, _Watched(workbench.world, needs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._workbench, name)


def planted(weakness: str) -> Architecture:
    """Return the agent with this weakness."""

    async def work(task: Task, workbench: Workbench) -> None:
        watched: Any = _Bench(workbench, WEAKNESSES[weakness])
        await state_machine(task, watched, Form(remedies=True))

    return work
