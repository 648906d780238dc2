"""One trial whose agent is a real process: its world and its store lie in files, SIGKILL ends it where a plan lets it die, and
another process goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from bench.record.world_events import WorldEnded
from bench.run.experiment.keys import key_of
from bench.run.experiment.matrix import Matrix, TrialSpec
from bench.run.trial.clock import TrialClock
from bench.run.trial.faults import OpenReceipt
from bench.run.trial.loop import run
from bench.run.trial.slots import Slots
from bench.run.trial.trial import Trial
from bench.run.trial.workbench import Workbench
from bench.worlds.run.environment import World, final_world
from bench.worlds.run.runtime.acting import Try
from bench.worlds.run.runtime.lives import WorldSurroundings
from bench.worlds.run.runtime.process import Process, Store

MAX_LIVES = 50
WORLD, STORE, TRIES, END = "world.db", "store.json", "tries.jsonl", "end.json"


@dataclass(frozen=True)
class End:
    """The end of a world: the digest of its tables, its damage, its agent's processes, and whether all is right."""

    digest: str
    damage: dict[str, int | None]
    lives: int
    correct: bool


class Mortal(Process):
    """An agent that dies as processes do: nothing behind that is run."""

    def die(self, *_: OpenReceipt) -> NoReturn:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("a process that was killed goes on")


class FileStore(Store):
    """A store in a file, which each write replaces as a whole."""

    def __init__(self, process: Process, on_write: Callable[[str, str], object], file: Path):
        super().__init__(process, on_write)
        self._file = file
        if file.exists():
            self._values, self._logs = json.loads(file.read_text(encoding="utf-8"))

    def _write(self, name: str, text: str) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps([self._values, self._logs]), encoding="utf-8")
        new.replace(self._file)
        super()._write(name, text)


class KeptTries(Counter[Try]):
    """The harness's own count of tries, by which faults are drawn. It outlives the agent."""

    def __init__(self, file: Path):
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        super().__init__((tool, effect) for tool, effect in map(json.loads, lines))
        self._file = file

    def __setitem__(self, key: Try, count: int) -> None:
        super().__setitem__(key, count)
        if hasattr(self, "_file"):
            with self._file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(key) + "\n")


def lived(matrix: Matrix, spec: TrialSpec, folder: Path) -> tuple[End, int]:
    """A trial's end, and how many of its processes were ended by SIGKILL. Raises RuntimeError where one ended otherwise."""
    for kills in range(MAX_LIVES):
        if (child := os.fork()) == 0:
            _be(matrix, spec, folder, restarted=kills > 0)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            continue
        if status:
            raise RuntimeError(f"a process of {spec.architecture}, {spec.plan.name}, {spec.instance} ended with {status}")
        return End(**json.loads((folder / END).read_text(encoding="utf-8"))), kills
    raise RuntimeError(f"{spec.architecture}, {spec.plan.name}, {spec.instance} died {MAX_LIVES} times")


def _be(matrix: Matrix, spec: TrialSpec, folder: Path, *, restarted: bool) -> NoReturn:
    """Run one process of the agent to its end."""
    status = 1
    try:
        (folder / END).write_text(json.dumps(_life(matrix, spec, folder, restarted)), encoding="utf-8")
        status = 0
    finally:
        os._exit(status)


def _life(matrix: Matrix, spec: TrialSpec, folder: Path, restarted: bool) -> dict[str, Any]:
    arm = matrix.arm(spec)
    scenario = arm.scenario
    environment = scenario.environment
    assert environment is not None
    key = key_of(matrix.config.seed, spec)
    with closing(World(environment, folder / WORLD, drawn_from=key.drawn_from)) as world:
        if restarted:
            world.note_crash("killed")
        store, tries = partial(FileStore, file=folder / STORE), KeptTries(folder / TRIES)
        trial = Trial(
            scenario,
            arm.model,
            spec.plan,
            key,
            arm.settings,
            slots=Slots(),
            back_off=matrix.back_off,
            server=matrix.server,
            clock=TrialClock(virtual=True),
            around=lambda trial: WorldSurroundings(world, trial, process=Mortal, store=store, tries=tries),
        )
        workbench = Workbench(trial)
        run(_worked(matrix, spec, workbench, trial.clock))
        workbench.world.acting.process.note_end()
        workbench.world.acting.end()
        ended = next(event for event in trial.log.events if isinstance(event, WorldEnded))
        grade = scenario.grade_world(final_world(world.snapshot().content))
    return {"digest": ended.digest, "damage": ended.damage, "lives": ended.lives, "correct": grade.correct}


async def _worked(matrix: Matrix, spec: TrialSpec, workbench: Workbench, clock: TrialClock) -> None:
    arm = matrix.arm(spec)
    async with asyncio.timeout(matrix.config.deadline_seconds):
        await clock.run(arm.architecture.work(arm.scenario.task, workbench))
