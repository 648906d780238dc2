"""A whole probe: the clean runs, the cells with their controls, and the repeated runs before a conclusion."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic

from bench.common.errors import ConfigError, OriginalChanged
from bench.common.minimal_sets import minimal_sets
from bench.probe.points import point_of
from bench.probe.read.blame import UNDAMAGED_VERDICTS, client_repeated, first_mends, last_mends, removes_damage
from bench.probe.read.run import MIN_CLEAN_RUNS, MIN_REPEATED_CELLS
from bench.probe.run.agent_run import AgentRun
from bench.probe.run.causes import name_calls
from bench.probe.run.cells import ProbeCell, possible_plans, require_cells
from bench.probe.run.clean import FIRST_CLEAN_RUNS, Clean
from bench.probe.run.clean_phase import CleanPhase
from bench.probe.run.gateway.fault_injector import CellFault
from bench.probe.run.gateway.mends import Mends
from bench.probe.run.gateway.subject import Subject
from bench.probe.run.judged_cells import MAX_RUNS_PER_CELL, JudgedCells
from bench.probe.run.runner import Worker
from bench.probe.run.verdict import is_half_way, judge
from bench.probe.run.writing import CellRun, run_of
from bench.record.probe_events import CLEAN, CONTROL, EARLY, GatewayMend, mended_plan, plan_of

CONTROL_EVERY = 10
"""Every tenth run of a worker is a control."""
MAX_PROBLEMS_IN_A_ROW = 3
"""The most cells in a row that cannot be run, before the probe ends."""

_EXCUSES = {
    True: "the call sets the number whatever it was: it did so too where the other writer came before the agent began",
    False: "the call heeds what is counted up in the row: no change was lost where the other writer counted it up too",
}
_NO_EXCUSES = {
    True: "the call goes by what the number was",
    False: "the call does not heed what is counted up in the row",
}
"""Whether the other writer wrote early -> what the run showed about the call that overwrote the other writer's number."""


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
    """Runs a whole probe of a subject: the clean runs, the cells, and the repeated runs.

    Args:
        subject: What is probed.
        worker: Returns a new worker for a number.
        request: What the user asks for.
        earlier_runs: The runs of earlier sessions, in their order. They are not repeated.

    clean       what the clean runs show; None before they have ended
    cells       the cells, the most severe first; () before the clean runs have ended
    """

    def __init__(
        self,
        subject: Subject,
        worker: Callable[[int], Worker],
        request: ProbeRequest = ProbeRequest(),
        earlier_runs: Iterable[CellRun] = (),
    ):
        if request.workers > 1 and (shared := _shared_by_workers(subject)):
            raise ConfigError(
                f"{shared} would serve {request.workers} workers at once; let the probe start it at {{port}}, or use one"
            )
        for word in request.only:
            if call := re.match(r"(.+#\d+)\.", word):  # whether a point exists is known before the first run
                require_cells([word], possible_plans([call[1]]))
        self.clean: Clean | None = None
        self.cells: Sequence[ProbeCell] = ()
        self._subject, self._worker, self._request = subject, worker, request
        self._earlier_runs = [run for run in earlier_runs if run.judgement]
        self._judged_cells = JudgedCells()
        self._excuses = dict[str, str]()
        """Plan of a cell in which another writer's value was overwritten -> why this is no damage, as another run showed; "" if
        it is."""
        self._early_count = 0
        self._replies: Sequence[tuple[int, bytes]] = ()
        """The model's replies of the last control, each with the number of characters of its request."""
        self._since_control = list[tuple[str, int]]()
        """The plans and repetitions of runs of former sessions since the last control."""
        self._clean_count, self._control_count = 0, 0
        self._deadline: float | None = None
        """The end of the budget by the monotonic clock; None without a budget."""

    async def runs(self) -> AsyncGenerator[CellRun, None]:
        """Yield each run of the agent when it ends. If you stop early, close this iterator, so that the workers are removed.

        Raises:
            OriginalChanged: A store of the owner's has changed, not only its copy.
            ConfigError: The subject cannot be probed: clean runs fail or differ, or too many cells in a row cannot be run.
        """
        async with AsyncExitStack() as exits:
            workers = [await exits.enter_async_context(self._worker(number)) for number in range(self._request.workers)]
            phase = CleanPhase(self._subject, self._request.only, self._request.all_forms)
            recorded = [run for run in self._earlier_runs if run.plan == CLEAN][:FIRST_CLEAN_RUNS]
            async for run in phase.runs(workers, recorded):
                yield run
            self.clean, self.cells, self._subject = phase.clean, phase.cells, phase.subject
            self._clean_count = FIRST_CLEAN_RUNS
            for run in self._earlier_runs:
                self._restore(run)
            self._earlier_runs.clear()
            self._deadline = None if self._request.budget is None else monotonic() + self._request.budget
            judged = self._judged_cells
            unfinished = [cell for cell in self.cells if not judged.is_settled(cell.plan) or judged.is_damaged(cell.plan)]
            async for run in self._run_cells(workers, [(cell, len(judged.of(cell.plan))) for cell in unfinished]):
                yield run
            if not self._is_out_of_budget() and not judged.any_damage:
                async for run in self._run_for_bound(workers, cells_to_repeat(self.cells, self._subject.name)):
                    yield run

    def _restore(self, run: CellRun) -> None:
        """Use the verdict of a run of an earlier session."""
        assert run.judgement
        if run.plan == CONTROL:
            self._judged_cells.void(run.judgement.voids)
            self._since_control.clear()
            self._control_count = run.repetition + 1
        elif run.plan == EARLY:
            self._early_count = run.repetition + 1
            if run.judgement.verdict == "same":
                self._excuses[plan_of(run.judgement.call, run.judgement.point or "")] = run.judgement.why
        elif run.plan != CLEAN:
            self._judged_cells.add(run)
            self._since_control.append((run.plan, run.repetition))
        elif run.repetition >= FIRST_CLEAN_RUNS:
            self._clean_count += 1

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
        """Run cells of a queue with one worker, and put the ended runs into `ended_runs`. Every tenth run is a control, and so
        is the last."""
        since_control = list(self._since_control) if number == 0 else []
        problems, run_count = 0, 0
        for cell, first_repetition in queue:
            if self._is_out_of_budget():
                break
            # a cell that an earlier session has run, and whose damage is known, is only run with mended parts
            is_done = self._judged_cells.is_settled(cell.plan) and self._judged_cells.is_damaged(cell.plan)
            for repetition in () if is_done else range(first_repetition, max(first_repetition + 1, MAX_RUNS_PER_CELL)):
                run = await self._run_cell(worker, cell, repetition, ended_runs)
                problems = problems + 1 if run.problem else 0
                if problems > MAX_PROBLEMS_IN_A_ROW:
                    raise ConfigError(f"{problems} cells in a row could not be run: {run.problem}")
                ended_runs.put_nowait(run)
                run_count += 1
                if run.judgement:
                    self._judged_cells.add(run)
                    since_control.append((cell.plan, repetition))
                if run_count % (CONTROL_EVERY - 1) == 0:
                    await self._run_control(worker, since_control, ended_runs)
                if self._judged_cells.is_settled(cell.plan) or run.problem:
                    break
            if self._judged_cells.is_damaged(cell.plan):
                run_count += await self._run_mended(worker, cell, since_control, ended_runs)
        if since_control:
            await self._run_control(worker, since_control, ended_runs)

    async def _run_cell(
        self,
        worker: Worker,
        cell: ProbeCell,
        repetition: int,
        ended_runs: asyncio.Queue[CellRun | None],
        mended: tuple[GatewayMend, ...] = (),
    ) -> CellRun:
        """Run one cell once, in which the gateway mends the parts `mended`, and return the run with its verdict."""
        assert self.clean
        started, plan = monotonic(), mended_plan(cell.plan, mended)
        fault = None if {"client", "tool"} & {*mended} else cell.fault  # to mend a client or a tool is to inject no fault
        processes = 1 if "lease" in mended else point_of(cell.point).processes
        mends = Mends(mended, self.clean.counts, self.clean.acting, self._replies, processes) if mended else None
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
            if judged.verdict == "overwritten" and (excuse := await self._excuse(worker, cell, ended_runs)):
                judged = replace(judged, verdict="same", findings=(), why=excuse)
            return run_of(plan, repetition, agent_run, judged)
        judged = judge(self.clean, agent_run, cell.call)
        if judged.is_damage and "memory" in mended and (unanswered := _call_without_answer(agent_run)):
            why = f"{unanswered} was under way when the agent died, so the journal does not know whether it was done"
            judged = replace(judged, verdict="no_verdict", findings=(), why=why)
        if mends and mends.lost_object:
            why = f"the answer of {mends.lost_object} is an object that cannot be given again"
            judged = replace(judged, verdict="no_verdict", findings=(), why=why)
        return run_of(plan, repetition, agent_run, replace(judged, point=cell.point, form=cell.form, mended=mended))

    async def _excuse(self, worker: Worker, cell: ProbeCell, ended_runs: asyncio.Queue[CellRun | None]) -> str:
        """Return why it is no damage that a call overwrote another writer's number; "" if it is damage.

        The agent runs once more, and the other writer writes before the agent starts. A call that sets the number leaves the
        same number as before; a call that reads the number, changes it and writes it does not. If the call counts something up
        in the same row, the agent runs again, and the other writer counts it up too: a call that heeds this version is refused
        then. "" for a number that does not exist yet, and for a run that cannot be made.
        """
        step = cell.fault.step
        if step is None or step in self._subject.meanwhile:
            return ""
        if cell.plan not in self._excuses:
            early, counting = replace(cell.fault, early=True), replace(cell.fault, step=replace(step, sql=step.counting))
            excuse = await self._excuse_by(worker, cell, early, ended_runs)
            if not excuse and step.counting:
                excuse = await self._excuse_by(worker, cell, counting, ended_runs)
            self._excuses[cell.plan] = excuse
        return self._excuses[cell.plan]

    async def _excuse_by(
        self, worker: Worker, cell: ProbeCell, fault: CellFault, ended_runs: asyncio.Queue[CellRun | None]
    ) -> str:
        """Run a cell with another fault, and return why its damage is none; "" if the run does not show that, or cannot be
        made."""
        assert self.clean
        how = "written early" if fault.early else "with a version"
        try:
            agent_run = await worker.run(self.clean.masks, fault, name=f"{cell.plan}, {how}")
        except OriginalChanged:
            raise
        except ConfigError:
            return ""
        agent_run = name_calls(agent_run, self.clean.calls)
        judged = judge(self.clean, agent_run, cell.call, cell.point, cell.form)
        is_excused = judged.verdict == "overwritten" if fault.early else judged.verdict in (*UNDAMAGED_VERDICTS, "gave_up")
        excuse = _EXCUSES[fault.early] if is_excused else ""
        why = excuse or _NO_EXCUSES[fault.early]
        judged = replace(judged, verdict="same" if excuse else "no_verdict", findings=(), why=why)
        ended_runs.put_nowait(run_of(EARLY, self._early_count, agent_run, judged))
        self._early_count += 1
        return excuse

    async def _run_mended(
        self, worker: Worker, cell: ProbeCell, since_control: list[tuple[str, int]], ended_runs: asyncio.Queue[CellRun | None]
    ) -> int:
        """Run a damaged cell again, each time with another set of parts mended, until the minimal sets that remove the damage
        are known. Return the number of runs."""
        calls, run_count = self._judged_cells.damaged_calls(cell.plan), 0

        async def suffices(mended: frozenset[GatewayMend]) -> bool:
            """Return whether these mended parts remove the damage. Run the cell with them if it was not run yet."""
            nonlocal run_count
            parts = tuple(sorted(mended))
            plan = mended_plan(cell.plan, parts)
            if not self._judged_cells.of(plan) and not self._is_out_of_budget():
                if not self._replies and "reply" in mended:
                    await self._run_control(worker, since_control, ended_runs)
                run = await self._run_cell(worker, cell, 0, ended_runs, parts)
                ended_runs.put_nowait(run)
                run_count += 1
                if run.judgement:
                    self._judged_cells.add(run)
                    since_control.append((plan, 0))
            return any(map(removes_damage, self._judged_cells.of(plan)))

        if not await minimal_sets(first_mends(calls), suffices) or client_repeated(calls):
            await minimal_sets(last_mends(calls), suffices)
        return run_count

    async def _run_control(
        self, worker: Worker, since_control: list[tuple[str, int]], ended_runs: asyncio.Queue[CellRun | None]
    ) -> None:
        """Run the agent without a fault. If its rows differ from the clean runs, the cells since the last control lose their
        verdicts."""
        assert self.clean
        repetition = self._control_count
        self._control_count += 1
        agent_run = name_calls(await worker.run(self.clean.masks, name=f"control {repetition + 1}"), self.clean.calls)
        replies = zip(agent_run.calls, agent_run.answers, strict=True)
        requests = [(agent_run.texts[call.arguments], raw) for call, raw in replies if call.door_kind == "model" and raw]
        self._replies = [(len(text), raw) for text, raw in requests]
        judged = judge(self.clean, agent_run)
        if judged.verdict != "same":
            judged = replace(judged, voids=tuple(since_control))
            self._judged_cells.void(since_control)
        ended_runs.put_nowait(run_of(CONTROL, repetition, agent_run, judged))
        since_control.clear()

    async def _run_for_bound(self, workers: Sequence[Worker], cells: Sequence[ProbeCell]) -> AsyncIterator[CellRun]:
        """Make the further clean runs and the second runs of cells that a bound needs."""
        assert self.clean
        for number in range(self._clean_count, MIN_CLEAN_RUNS):
            worker = workers[number % len(workers)]
            agent_run = name_calls(await worker.run(self.clean.masks, name=f"clean run {number + 1}"), self.clean.calls)
            yield run_of(CLEAN, number, agent_run, judge(self.clean, agent_run))
        second_runs = [(cell, 1) for cell in cells if len(self._judged_cells.of(cell.plan)) == 1]
        async for run in self._run_cells(workers, second_runs):
            yield run

    def _is_out_of_budget(self) -> bool:
        """Return whether the budget of time is used up."""
        return self._deadline is not None and monotonic() > self._deadline


def _call_without_answer(agent_run: AgentRun) -> str:
    """Return the name of a call that its server never answered, made by a process of the agent that was killed; "" if there is
    none. Reads and requests to the model do not count."""
    last_life = max((call.life for call in agent_run.calls), default=1)
    calls = [
        call for call in agent_run.calls if call.door_kind != "model" and call.call_class != "read" and call.life < last_life
    ]
    return next((call.name for call in calls if call.passed_on is not None and call.answered is None), "")


def _shared_by_workers(subject: Subject) -> str:
    """Return the service or server that all workers would share; "" if there is none."""
    services = [service.name for service in subject.services if "{port}" not in service.url or not service.command]
    servers = [server.name for config in subject.configs for server in config.servers if server.url]
    return next(iter([*services, *servers]), "")


def cells_to_repeat(cells: Sequence[ProbeCell], subject: str) -> list[ProbeCell]:
    """Return the cells that are run again for a bound: ten, or all if there are fewer. The choice is the same each time."""
    return random.Random(f"redrawn {subject}").sample(list(cells), min(MIN_REPEATED_CELLS, len(cells)))
