"""A whole probe: the clean runs, the cells with their controls, and the repeated runs before a conclusion."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain, pairwise
from time import monotonic

from bench.common.errors import ConfigError, OriginalChanged
from bench.common.minimal_sets import minimal_sets
from bench.probe.points import point_of
from bench.probe.read.blame import client_repeated, first_mends, last_mends, removes_damage
from bench.probe.read.run import INCONCLUSIVE, MIN_CLEAN_RUNS, MIN_REPEATED_CELLS
from bench.probe.run.agent_run import AgentRun
from bench.probe.run.causes import name_calls
from bench.probe.run.cells import ProbeCell, cells_of, possible_plans, require_cells
from bench.probe.run.clean import FIRST_CLEAN_RUNS, Clean, clean_of, objection, planned_calls, with_identities
from bench.probe.run.gateway.mends import Mends
from bench.probe.run.gateway.subject import Subject
from bench.probe.run.runner import Worker
from bench.probe.run.verdict import is_half_way, judge
from bench.probe.run.volatile import Masks
from bench.probe.run.writing import CellRun, run_of
from bench.record.entry import MOST
from bench.record.events import OfAKind, of_kind
from bench.record.probe_events import (
    CLEAN,
    CONTROL,
    EARLY,
    CellJudged,
    CellsPlanned,
    GatewayCall,
    GatewayMend,
    StoresRead,
    mended_plan,
    plan_of,
)

MAX_RUNS_PER_CELL = 5
"""How often a damaged cell is run if its damage does not come again: then it is a rate."""
CONTROL_EVERY = 10
MAX_CELLS = MOST - 100
"""The most cells: a manifest names each, and calls that are first met in a cell besides."""
MAX_PROBLEMS_IN_A_ROW = 3
"""Cells in a row that cannot be run, after which the probe ends."""
MAX_WRITTEN_PATHS = 100
"""The most paths that a record has of what was written outside of the stores."""
CLEAN_START_INTERVAL_S = 1.1
"""Seconds between the starts of the first two clean runs: what is the same only within one second varies."""


@dataclass(frozen=True)
class ProbeRequest:
    """What the user asks of a probe.

    workers    how many workers run at the same time
    all_forms  whether each wire form of a point is a cell
    only       words that select cells
    budget     seconds after which no further cell is started; None for no bound
    """

    workers: int = 1
    all_forms: bool = False
    only: Sequence[str] = ()
    budget: float | None = None


class Probe:
    """Probes a subject.

    Args:
        subject: What is probed.
        worker: Returns a new worker for a number.
        request: What the user asks for.
        kept: The runs of earlier sessions, in their order. They are not repeated.

    clean       what the clean runs showed, once they have ended
    cells       the cells, the most severe first
    """

    def __init__(
        self,
        subject: Subject,
        worker: Callable[[int], Worker],
        request: ProbeRequest = ProbeRequest(),
        kept: Iterable[CellRun] = (),
    ):
        if request.workers > 1 and (shared := _shared_by_workers(subject)):
            raise ConfigError(
                f"{shared} would serve {request.workers} workers at once; let the probe start it at {{port}}, or use one"
            )
        for word in request.only:
            if call := re.match(r"(.+#\d+)\.", word):  # of a point it is known before anything is run
                require_cells([word], possible_plans([call[1]]))
        self.clean: Clean | None = None
        self.cells: Sequence[ProbeCell] = ()
        self._subject, self._worker, self._request = subject, worker, request
        self._kept = [run for run in kept if run.judgement]
        self._judged = dict[str, list[CellJudged]]()
        self._sets_by_cell = dict[str, bool]()
        """The cells with a value of another writer's that was overwritten -> whether the call sets it whatever it was."""
        self._calls = dict[str, Sequence[GatewayCall]]()
        """The calls of the first damaged run of each cell."""
        self._replies: Sequence[tuple[int, bytes]] = ()
        """The model's replies of the last control, each with how long its request was."""
        self._since_control = list[tuple[str, int]]()
        """The cells of former sessions since the last control."""
        self._written = dict[str, str]()
        """The paths outside of the stores at which clean runs wrote, each with the framework that keeps there what the agent
        knows; "" if none known here does."""
        self._refused = set[str]()
        """The hosts and ports that clean runs reached for in vain."""
        self._clean_made, self._controls = 0, 0
        self._until: float | None = None

    async def runs(self) -> AsyncGenerator[CellRun, None]:
        """Yield each run of the agent when it ends. If you stop early, close this iterator, so that the workers are removed.

        Raises:
            OriginalChanged: A store of the owner's has changed, not only its copy.
            ConfigError: The subject cannot be probed: clean runs fail or differ, or too many cells in a row cannot be run.
        """
        async with AsyncExitStack() as exits:
            workers = [await exits.enter_async_context(self._worker(number)) for number in range(self._request.workers)]
            async for run in self._run_clean(workers):
                yield run
            assert self.clean
            for run in self._kept:
                self._restore(run)
            self._kept.clear()
            self._until = None if self._request.budget is None else monotonic() + self._request.budget
            run_counts = {cell.plan: len(self._judged.get(cell.plan, ())) for cell in self.cells}
            missing = [
                (cell, run_counts[cell.plan])
                for cell in self.cells
                if not self._is_settled(cell.plan) or self._is_damaged(cell)
            ]
            async for run in self._run_cells(workers, missing):
                yield run
            repeated = cells_to_repeat(self.cells, self._subject.name)
            if not self._is_out_of_budget() and not any(run.is_damage for judged in self._judged.values() for run in judged):
                async for run in self._run_for_bound(workers, repeated):
                    yield run

    # Clean runs.

    async def _run_clean(self, workers: Sequence[Worker]) -> AsyncIterator[CellRun]:
        """Make the missing clean runs. If there are two workers, each makes one of the first two runs, so that the runs
        differ in all that belongs to a worker."""
        recorded = [run for run in self._kept if run.plan == CLEAN][:FIRST_CLEAN_RUNS]
        agent_runs = [_agent_run_of(run) for run in recorded]
        for planned in chain.from_iterable(of_kind(run.events, CellsPlanned) for run in recorded):
            self._written.update(planned.memories)
        has_check, wall_times = self._subject.agent.done is not None, list[float]()
        for number in range(len(agent_runs), FIRST_CLEAN_RUNS):
            started = monotonic()
            worker = workers[number % 2 % len(workers)]
            try:
                agent_run = await worker.run(Masks(), one_by_one=number == FIRST_CLEAN_RUNS - 1, name=f"clean run {number + 1}")
            except OriginalChanged as error:
                yield CellRun(CLEAN, number, (), {}, monotonic() - started, str(error))
                raise
            agent_runs.append(agent_run)
            self._written.update(
                {path: framework or self._written.get(path, "") for path, framework in agent_run.written.items()}
            )
            self._refused.update(agent_run.refused)
            clean_run = name_calls(agent_run, planned_calls(agent_run, Masks()))
            wall_times.append(monotonic() - started)
            if problem := objection(agent_run, number + 1, has_check):
                yield replace(run_of(CLEAN, number, clean_run, _clean_verdict(clean_run)), problem=problem)
                raise ConfigError(problem)
            if number == 0:
                require_cells(self._request.only, possible_plans(call.name for call in clean_run.calls if not call.continues))
            events: list[OfAKind] = []
            if number == FIRST_CLEAN_RUNS - 1:
                self._plan(agent_runs)
                events.append(self._cells_planned(sum(wall_times) / len(wall_times)))
                assert self.clean
                clean_run = self.clean.reference if self.clean.one_by_one else clean_run
            else:
                await asyncio.sleep(max(0.0, started + CLEAN_START_INTERVAL_S - monotonic()))
            yield run_of(CLEAN, number, clean_run, _clean_verdict(clean_run), events)
        if self.clean is None:
            self._plan(agent_runs)
        self._clean_made = FIRST_CLEAN_RUNS

    def _plan(self, agent_runs: Sequence[AgentRun]) -> None:
        """Compute the cells from the clean runs."""
        self.clean = clean_of(agent_runs)
        if any(self._written.values()):
            self._subject = replace(self._subject, remembers=True)
        self.cells = cells_of(self.clean, self._subject, all_forms=self._request.all_forms, only=self._request.only)[:MAX_CELLS]
        require_cells(self._request.only, [cell.plan for cell in cells_of(self.clean, self._subject, all_forms=True)])

    def _cells_planned(self, seconds: float) -> CellsPlanned:
        """Return the record of the plan."""
        assert self.clean
        return CellsPlanned(
            calls=tuple(self.clean.calls.values()),
            cells=tuple(cell.plan for cell in self.cells),
            left_out=len(cells_of(self.clean, self._subject, all_forms=True)) - len(self.cells),
            volatile=tuple(self.clean.varying),
            one_by_one=self.clean.one_by_one,
            again=tuple(call for call in self.clean.again if not self._is_meant_twice(call)),
            race=self.clean.race,
            seconds=seconds,
            written=tuple(sorted(path for path, framework in self._written.items() if not framework)[:MAX_WRITTEN_PATHS]),
            memories=dict(sorted(item for item in self._written.items() if item[1])[:MAX_WRITTEN_PATHS]),
            refused=tuple(sorted(self._refused)[:MAX_WRITTEN_PATHS]),
        )

    def _is_meant_twice(self, call: str) -> bool:
        """Return whether the owner says that the task makes a call more than once."""
        return any(fnmatchcase(call.rpartition("#")[0], known) for known in self._subject.meant)

    def _restore(self, run: CellRun) -> None:
        """Take over a run of an earlier session."""
        assert run.judgement
        if run.plan == CONTROL:
            self._void(run.judgement.voids)
            self._since_control.clear()
            self._controls = run.repetition + 1
        elif run.plan == EARLY:
            self._note_early_run(run.judgement)
        elif run.plan != CLEAN:
            self._add(run)
            self._since_control.append((run.plan, run.repetition))
        elif run.repetition >= FIRST_CLEAN_RUNS:
            self._clean_made += 1

    # Cells.

    async def _run_cells(self, workers: Sequence[Worker], cells: Iterable[tuple[ProbeCell, int]]) -> AsyncIterator[CellRun]:
        """Run these cells, each with its run number, and yield each run when it ends."""
        queue = iter(list(cells))
        ended_runs: asyncio.Queue[CellRun | None] = asyncio.Queue()
        tasks = [
            asyncio.create_task(self._run_queue(number, worker, queue, ended_runs)) for number, worker in enumerate(workers)
        ]
        for task in tasks:
            task.add_done_callback(lambda _: ended_runs.put_nowait(None))
        try:
            running = len(tasks)
            while running:
                run = await ended_runs.get()
                if run is None:
                    running -= 1
                    for task in tasks:
                        if task.done():
                            task.result()
                else:
                    yield run
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run_queue(
        self, number: int, worker: Worker, queue: Iterable[tuple[ProbeCell, int]], ended_runs: asyncio.Queue[CellRun | None]
    ) -> None:
        """Run cells of a queue with one worker. Every tenth run is a control, and so is the last."""
        since_control = list(self._since_control) if number == 0 else []
        problems, run_count = 0, 0
        for cell, first_repetition in queue:
            if self._is_out_of_budget():
                break
            is_done = self._is_settled(cell.plan) and self._is_damaged(cell)
            for repetition in () if is_done else range(first_repetition, max(first_repetition + 1, MAX_RUNS_PER_CELL)):
                run = await self._run_cell(worker, cell, repetition, ended_runs)
                problems = problems + 1 if run.problem else 0
                if problems > MAX_PROBLEMS_IN_A_ROW:
                    raise ConfigError(f"{problems} cells in a row could not be run: {run.problem}")
                ended_runs.put_nowait(run)
                run_count += 1
                if run.judgement:
                    self._add(run)
                    since_control.append((cell.plan, repetition))
                if run_count % (CONTROL_EVERY - 1) == 0:
                    await self._run_control(worker, since_control, ended_runs)
                if self._is_settled(cell.plan) or run.problem:
                    break
            if self._is_damaged(cell):
                run_count += await self._run_mended(worker, cell, since_control, ended_runs)
        if since_control:
            await self._run_control(worker, since_control, ended_runs)

    def _is_settled(self, plan: str) -> bool:
        """Return whether a cell needs no further run: it did no damage, or did its damage twice."""
        runs = self._judged.get(plan, ())
        judged = [run for run in runs if run.verdict not in INCONCLUSIVE]
        is_confirmed = not any(run.is_damage for run in judged) or any(same_verdict(*pair) for pair in pairwise(judged))
        return bool(runs) and (is_confirmed or len(runs) >= MAX_RUNS_PER_CELL)

    async def _run_cell(
        self,
        worker: Worker,
        cell: ProbeCell,
        repetition: int,
        ended_runs: asyncio.Queue[CellRun | None],
        mended: tuple[GatewayMend, ...] = (),
    ) -> CellRun:
        """Run one cell once, also with parts mended, and return the run with its verdict."""
        assert self.clean
        started, plan = monotonic(), mended_plan(cell.plan, mended)
        fault = None if {"client", "tool"} & {*mended} else cell.fault
        together = 1 if "lease" in mended else point_of(cell.point).processes
        mends = Mends(mended, self.clean.counts, self.clean.acting, self._replies, together) if mended else None
        try:
            half_way = partial(is_half_way, self.clean)
            agent_run = await worker.run(self.clean.masks, fault, mends=mends, half_way=half_way, name=plan)
            agent_run = name_calls(agent_run, self.clean.calls)
        except OriginalChanged:
            raise
        except ConfigError as error:
            return CellRun(plan, repetition, (), {}, monotonic() - started, str(error))
        if not mended:
            judged = judge(self.clean, agent_run, cell.call, cell.point, cell.form)
            if judged.verdict == "overwritten" and await self._sets_regardless(worker, cell, ended_runs):
                why = (
                    "the call sets the number whatever it was: it did so too where the other writer came before the agent began"
                )
                judged = replace(judged, verdict="same", findings=(), why=why)
            return run_of(plan, repetition, agent_run, judged)
        judged = judge(self.clean, agent_run, cell.call)
        if judged.is_damage and "memory" in mended and (unanswered := _call_without_answer(agent_run)):
            why = f"{unanswered} was under way when the agent died, so the journal does not know whether it was done"
            judged = replace(judged, verdict="no_verdict", findings=(), why=why)
        if mends and mends.lost_object:
            why = f"the answer of {mends.lost_object} is an object that cannot be given again"
            judged = replace(judged, verdict="no_verdict", findings=(), why=why)
        return run_of(plan, repetition, agent_run, replace(judged, point=cell.point, form=cell.form, mended=mended))

    async def _sets_regardless(self, worker: Worker, cell: ProbeCell, ended_runs: asyncio.Queue[CellRun | None]) -> bool:
        """Return whether a call that overwrote another writer's number sets it regardless of its value.

        To find out, the other writer comes before the agent starts: a call that sets the number leaves the same number, and
        one that writes what it has read and changed does not. A number that does not exist yet then is not judged, nor is
        one in a run that cannot be made.
        """
        assert self.clean
        if cell.fault.step in self._subject.meanwhile:
            return False
        if cell.plan not in self._sets_by_cell:
            fault = replace(cell.fault, early=True)
            try:
                agent_run = await worker.run(self.clean.masks, fault, name=f"{cell.plan}, written early")
            except OriginalChanged:
                raise
            except ConfigError:
                return False
            agent_run = name_calls(agent_run, self.clean.calls)
            judged = judge(self.clean, agent_run, cell.call, cell.point, cell.form)
            is_set = judged.verdict == "overwritten"
            why = f"{cell.plan}: the call {'sets the number whatever it was' if is_set else 'goes by what the number was'}"
            judged = replace(judged, verdict="same" if is_set else "no_verdict", findings=(), why=why)
            ended_runs.put_nowait(run_of(EARLY, len(self._sets_by_cell), agent_run, judged))
            self._note_early_run(judged)
        return self._sets_by_cell[cell.plan]

    def _note_early_run(self, judged: CellJudged) -> None:
        """Note the result of a run in which another writer came before the agent."""
        self._sets_by_cell[plan_of(judged.call, judged.point or "")] = judged.verdict == "same"

    def _is_damaged(self, cell: ProbeCell) -> bool:
        """Return whether a run of a cell did damage."""
        return any(run.is_damage for run in self._judged.get(cell.plan, ()))

    async def _run_mended(
        self, worker: Worker, cell: ProbeCell, since_control: list[tuple[str, int]], ended_runs: asyncio.Queue[CellRun | None]
    ) -> int:
        """Run a damaged cell with sets of parts mended, until the minimal sufficient sets are known. Return the number of
        runs."""
        calls, run_count = self._calls[cell.plan], 0

        async def suffices(mended: frozenset[GatewayMend]) -> bool:
            nonlocal run_count
            parts = tuple(sorted(mended))
            plan = mended_plan(cell.plan, parts)
            if plan not in self._judged and not self._is_out_of_budget():
                if not self._replies and "reply" in mended:
                    await self._run_control(worker, since_control, ended_runs)
                run = await self._run_cell(worker, cell, 0, ended_runs, parts)
                ended_runs.put_nowait(run)
                run_count += 1
                if run.judgement:
                    self._add(run)
                    since_control.append((plan, 0))
            return any(map(removes_damage, self._judged.get(plan, ())))

        if not await minimal_sets(first_mends(calls), suffices) or client_repeated(calls):
            await minimal_sets(last_mends(calls), suffices)
        return run_count

    async def _run_control(
        self, worker: Worker, since_control: list[tuple[str, int]], ended_runs: asyncio.Queue[CellRun | None]
    ) -> None:
        """Run the agent without a fault. If its rows differ from the clean runs, the cells since the last control lose their
        verdicts."""
        assert self.clean
        repetition = self._controls
        self._controls += 1
        agent_run = name_calls(await worker.run(self.clean.masks, name=f"control {repetition + 1}"), self.clean.calls)
        replies = zip(agent_run.calls, agent_run.answers, strict=True)
        requests = [(agent_run.texts[call.arguments], raw) for call, raw in replies if call.door_kind == "model" and raw]
        self._replies = [(len(text), raw) for text, raw in requests]
        judged = judge(self.clean, agent_run)
        if judged.verdict != "same":
            judged = replace(judged, voids=tuple(since_control))
            self._void(since_control)
        ended_runs.put_nowait(run_of(CONTROL, repetition, agent_run, judged))
        since_control.clear()

    def _add(self, run: CellRun) -> None:
        """Keep the verdict of a run. Its rows are not kept, since there can be many."""
        assert run.judgement
        findings = tuple(replace(finding, rows=()) for finding in run.judgement.findings)
        if run.judgement.is_damage and not run.judgement.mended:
            self._calls.setdefault(run.plan, of_kind(run.events, GatewayCall))
        self._judged.setdefault(run.plan, []).append(replace(run.judgement, findings=findings))

    def _void(self, cells: Iterable[tuple[str, int]]) -> None:
        """Take the verdicts of these runs away."""
        for plan, repetition in cells:
            runs = self._judged.get(plan, [])
            if repetition < len(runs):
                runs[repetition] = replace(runs[repetition], verdict="no_verdict", why="the control after it was not the same")

    async def _run_for_bound(self, workers: Sequence[Worker], cells: Sequence[ProbeCell]) -> AsyncIterator[CellRun]:
        """Make the further clean runs and the second runs of cells that a bound needs."""
        assert self.clean
        for number in range(self._clean_made, MIN_CLEAN_RUNS):
            worker = workers[number % len(workers)]
            agent_run = name_calls(await worker.run(self.clean.masks, name=f"clean run {number + 1}"), self.clean.calls)
            yield run_of(CLEAN, number, agent_run, judge(self.clean, agent_run))
        second_runs = [(cell, 1) for cell in cells if len(self._judged.get(cell.plan, ())) == 1]
        async for run in self._run_cells(workers, second_runs):
            yield run

    def _is_out_of_budget(self) -> bool:
        """Return whether the budget of time is used up."""
        return self._until is not None and monotonic() > self._until


def _call_without_answer(agent_run: AgentRun) -> str:
    """Return a call that was forwarded in a process that ended, and that its server never answered; "" if there is none."""
    last = max((call.life for call in agent_run.calls), default=1)
    under_way = (call for call in agent_run.calls if call.life < last and call.passed_on is not None and call.answered is None)
    return next((call.name for call in under_way if call.door_kind != "model" and call.call_class != "read"), "")


def _shared_by_workers(subject: Subject) -> str:
    """Return the service or server that all workers would share; "" if there is none."""
    services = [service.name for service in subject.services if "{port}" not in service.url or not service.command]
    servers = [server.name for config in subject.configs for server in config.servers if server.url]
    return next(iter([*services, *servers]), "")


def _clean_verdict(agent_run: AgentRun) -> CellJudged:
    """Return the verdict on a clean run."""
    return CellJudged(
        "",
        None,
        "",
        None,
        None,
        "same",
        agent_run.said_done,
        agent_run.printed,
        checks=agent_run.checks,
        on_stdout=agent_run.on_stdout,
    )


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


def same_verdict(first: CellJudged, second: CellJudged) -> bool:
    """Return whether two runs of a cell have the same verdict and the same damaged effects, however often these occur."""
    kinds = [{(finding.kind, finding.effect) for finding in judged.findings} for judged in (first, second)]
    return first.verdict == second.verdict and kinds[0] == kinds[1]


def cells_to_repeat(cells: Sequence[ProbeCell], subject: str) -> list[ProbeCell]:
    """Return the cells that are run again for a bound: ten, or all if there are fewer. The choice is the same each time."""
    return random.Random(f"redrawn {subject}").sample(list(cells), min(MIN_REPEATED_CELLS, len(cells)))
