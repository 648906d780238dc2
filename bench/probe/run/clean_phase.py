"""Makes the clean runs of a probe before its first cell, and plans the cells from them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import chain
from time import monotonic

from bench.common.errors import ConfigError, OriginalChanged
from bench.probe.run.agent_run import AgentRun
from bench.probe.run.causes import name_calls
from bench.probe.run.cells import ProbeCell, cells_of, possible_plans, require_cells
from bench.probe.run.clean import FIRST_CLEAN_RUNS, Clean, clean_of, objection, planned_calls, with_identities
from bench.probe.run.gateway.subject import Subject
from bench.probe.run.runner import Worker
from bench.probe.run.volatile import Masks
from bench.probe.run.writing import CellRun, run_of
from bench.record.entry import MAX_ENTRIES
from bench.record.events import OfAKind, of_kind
from bench.record.probe_events import CLEAN, CellJudged, CellsPlanned, GatewayCall, StoresRead

MAX_CELLS = MAX_ENTRIES - 100
"""The most cells: a manifest names each, and calls that are first met in a cell besides."""
MAX_WRITTEN_PATHS = 100
"""The most paths in a record that were written outside of the stores."""
CLEAN_START_INTERVAL_S = 1.1
"""Seconds between the starts of the first two clean runs: a value that is the same only within one second then varies."""


class CleanPhase:
    """The first phase of a probe.

    Args:
        subject: What is probed.
        only: Words that select cells; () for all cells.
        all_forms: Whether each wire form of a point is a cell.

    subject   what is probed; after `runs` it says whether a framework keeps the agent's memory
    clean     after `runs`: what the clean runs show
    cells     after `runs`: the cells, the most severe first
    """

    clean: Clean

    def __init__(self, subject: Subject, only: Sequence[str], all_forms: bool):
        self.subject, self._only, self._all_forms = subject, only, all_forms
        self.cells: Sequence[ProbeCell] = ()
        self._written = dict[str, str]()
        """Path outside of the stores at which clean runs wrote -> the framework that keeps the agent's memory there; "" if no
        known framework does."""
        self._refused = set[str]()
        """The hosts and ports to which connections of clean runs were refused."""
        self._left_running = set[str]()
        """The commands of processes that still ran when the agent had ended."""

    async def runs(self, workers: Sequence[Worker], recorded: Sequence[CellRun]) -> AsyncIterator[CellRun]:
        """Make the missing clean runs, and yield each when it ends. If there are two workers, each makes one of the first two
        runs, so that the runs differ in all that belongs to a worker.

        Args:
            workers: The workers that run the agent, of which at most two are used.
            recorded: The clean runs of earlier sessions.
        """
        agent_runs = [_agent_run_of(run) for run in recorded]
        for planned in chain.from_iterable(of_kind(run.events, CellsPlanned) for run in recorded):
            self._written.update(planned.memories)
        has_check, wall_times = self.subject.agent.done is not None, list[float]()
        for number in range(len(agent_runs), FIRST_CLEAN_RUNS):
            started, is_last = monotonic(), number == FIRST_CLEAN_RUNS - 1
            worker = workers[number % 2 % len(workers)]  # the first two workers in turn, or the only one
            try:
                agent_run = await worker.run(Masks(), one_by_one=is_last, name=f"clean run {number + 1}")
            except OriginalChanged as error:
                yield CellRun(CLEAN, number, (), {}, monotonic() - started, str(error))
                raise
            agent_runs.append(agent_run)
            self._written |= {path: owner or self._written.get(path, "") for path, owner in agent_run.written.items()}
            self._refused.update(agent_run.refused)
            self._left_running.update(agent_run.left_running)
            clean_run = name_calls(agent_run, planned_calls(agent_run, Masks()))
            wall_times.append(monotonic() - started)
            if problem := objection(agent_run, number + 1, has_check):
                yield replace(run_of(CLEAN, number, clean_run, _clean_verdict(clean_run)), problem=problem)
                raise ConfigError(problem)
            if number == 0:
                require_cells(self._only, possible_plans(call.name for call in clean_run.calls if not call.continues))
            events: list[OfAKind] = []
            if is_last:
                self._plan_cells(agent_runs)
                events.append(self._cells_planned(sum(wall_times) / len(wall_times)))
                clean_run = self.clean.reference if self.clean.one_by_one else clean_run
            else:
                await asyncio.sleep(max(0.0, started + CLEAN_START_INTERVAL_S - monotonic()))
            yield run_of(CLEAN, number, clean_run, _clean_verdict(clean_run), events)
        if len(recorded) == FIRST_CLEAN_RUNS:
            self._plan_cells(agent_runs)

    def _plan_cells(self, agent_runs: Sequence[AgentRun]) -> None:
        """Compute the cells from the clean runs. Raises ConfigError if the runs differ, or a word selects no cell."""
        self.clean = clean_of(agent_runs)
        if any(self._written.values()):
            self.subject = replace(self.subject, remembers=True)
        self.cells = cells_of(self.clean, self.subject, all_forms=self._all_forms, only=self._only)[:MAX_CELLS]
        require_cells(self._only, [cell.plan for cell in cells_of(self.clean, self.subject, all_forms=True)])

    def _cells_planned(self, seconds: float) -> CellsPlanned:
        """Return the event that records the calls, the cells and the limits of the plan; `seconds` is the mean length of the
        clean runs."""
        return CellsPlanned(
            calls=tuple(self.clean.calls.values()),
            cells=tuple(cell.plan for cell in self.cells),
            left_out=len(cells_of(self.clean, self.subject, all_forms=True)) - len(self.cells),
            volatile=tuple(self.clean.varying),
            one_by_one=self.clean.one_by_one,
            again=tuple(call for call in self.clean.again if not self._is_meant_twice(call)),
            race=self.clean.race,
            seconds=seconds,
            written=tuple(sorted(path for path, framework in self._written.items() if not framework)[:MAX_WRITTEN_PATHS]),
            memories=dict(sorted(item for item in self._written.items() if item[1])[:MAX_WRITTEN_PATHS]),
            refused=tuple(sorted(self._refused)[:MAX_WRITTEN_PATHS]),
            left_running=tuple(sorted(self._left_running)[:MAX_WRITTEN_PATHS]),
        )

    def _is_meant_twice(self, call: str) -> bool:
        """Return whether the owner says that the task makes a call more than once."""
        return any(fnmatchcase(call.rpartition("#")[0], pattern) for pattern in self.subject.meant)


def _clean_verdict(agent_run: AgentRun) -> CellJudged:
    """Return the verdict on a clean run, which is `same`."""
    judged = CellJudged("", None, "", None, None, "same", agent_run.said_done, agent_run.printed)
    return replace(judged, checks=agent_run.checks, on_stdout=agent_run.on_stdout)


def _agent_run_of(run: CellRun) -> AgentRun:
    """Return the run of the agent for a recorded clean run."""
    calls = tuple(of_kind(run.events, GatewayCall))
    judged = run.judgement
    agent_run = AgentRun(
        calls=calls,
        identities=("",) * len(calls),
        readings=tuple(of_kind(run.events, StoresRead)),
        texts=run.texts,
        said_done=judged is None or judged.said_done,
        printed=judged.printed if judged else None,
        checks=judged.checks if judged else (),
        seconds=run.seconds,
    )
    return with_identities(agent_run, Masks())
