"""A whole probe: clean runs, cells with their controls, and the runs that are repeated before a conclusion is drawn."""

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
from bench.probe.read.blame import asked_first, asked_last, asks_client, is_enough
from bench.probe.read.run import CELLS_AGAIN, CLEAN_RUNS
from bench.probe.run.causes import name_calls
from bench.probe.run.cells import ProbeCell, cells_of, possible_plans, require_cells
from bench.probe.run.clean import FEWEST, Clean, clean_of, objection, planned_calls, with_identities
from bench.probe.run.course import AgentCourse
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
    CellVerdict,
    GatewayCall,
    GatewayMend,
    StoresRead,
    mended_plan,
    plan_of,
)

AGAIN = 5
"""How often a damaged cell is run if its damage does not come again: then it is a rate."""
UNJUDGED = frozenset[CellVerdict](("not_applicable", "no_verdict", "repeated"))
CONTROL_EVERY = 10
MOST_CELLS = MOST - 100
"""The most cells: a manifest names each, and calls that are first met in a cell besides."""
MOST_PROBLEMS = 3
"""Cells in a row that cannot be run, after which the probe ends."""
MOST_WRITTEN = 100
"""The most paths that a record has of what was written outside of the stores."""
APART = 1.1
"""Seconds between the starts of the first two clean runs: what is the same only within one second varies."""


@dataclass(frozen=True)
class Asked:
    """What is asked for.

    workers    how many work at a time
    all_forms  whether each wire form of a point is a cell
    only       words of which a cell's plan must have one
    budget     seconds after which no further cell is begun; None for no bound
    """

    workers: int = 1
    all_forms: bool = False
    only: Sequence[str] = ()
    budget: float | None = None


class Probe:
    """Probes a subject.

    Args:
        subject: What is probed.
        worker: Makes a worker, by its number.
        asked: What is asked for.
        kept: The runs that a former session made, in their order. They are not made again.

    clean       what the clean runs showed, once they have ended
    cells       the cells that follow from it, the gravest first
    """

    def __init__(self, subject: Subject, worker: Callable[[int], Worker], asked: Asked = Asked(), kept: Iterable[CellRun] = ()):
        if asked.workers > 1 and (shared := _what_all_share(subject)):
            raise ConfigError(
                f"{shared} would serve {asked.workers} workers at once; let the probe start it at {{port}}, or use one"
            )
        for word in asked.only:
            if call := re.match(r"(.+#\d+)\.", word):  # of a point it is known before anything is run
                require_cells([word], possible_plans([call[1]]))
        self.clean: Clean | None = None
        self.cells: Sequence[ProbeCell] = ()
        self._subject, self._worker, self._asked = subject, worker, asked
        self._kept = [run for run in kept if run.judgement]
        self._judged = dict[str, list[CellJudged]]()
        self._setting = dict[str, bool]()
        """The cells with a value of another writer's that was overwritten -> whether the call sets it whatever it was."""
        self._calls = dict[str, Sequence[GatewayCall]]()
        """The calls of the first damaged run of each cell."""
        self._replies: Sequence[tuple[int, bytes]] = ()
        """The model's replies of the last control, each with how long its request was."""
        self._unproved = list[tuple[str, int]]()
        """The cells of former sessions since the last control."""
        self._written = dict[str, str]()
        """The paths outside of the stores at which clean runs wrote, each with the framework that keeps there what the agent
        knows; "" if none known here does."""
        self._refused = set[str]()
        """The hosts and ports that clean runs reached for in vain."""
        self._clean_made, self._controls = 0, 0
        self._until: float | None = None

    async def runs(self) -> AsyncGenerator[CellRun, None]:
        """Yield each run of the agent as it ends. If you stop early, close this iterator, so that nothing is left behind.

        Raises:
            OriginalChanged: A store of the owner's has changed, and not its copy alone.
            ConfigError: The subject cannot be probed: clean runs fail or differ, or too many cells in a row cannot be run.
        """
        async with AsyncExitStack() as exits:
            workers = [await exits.enter_async_context(self._worker(number)) for number in range(self._asked.workers)]
            async for run in self._clean(workers):
                yield run
            assert self.clean
            for run in self._kept:
                self._keep(run)
            self._kept.clear()
            self._until = None if self._asked.budget is None else monotonic() + self._asked.budget
            made = {cell.plan: len(self._judged.get(cell.plan, ())) for cell in self.cells}
            missing = [
                (cell, made[cell.plan]) for cell in self.cells if not self._is_settled(cell.plan) or self._is_damaged(cell)
            ]
            async for run in self._all(workers, missing):
                yield run
            again = draw(self.cells, self._subject.name)
            if not self._is_over() and not any(run.is_damage for held in self._judged.values() for run in held):
                async for run in self._for_a_bound(workers, again):
                    yield run

    # Clean runs.

    async def _clean(self, workers: Sequence[Worker]) -> AsyncIterator[CellRun]:
        """Make the clean runs that are missing. If there are two workers, each makes one of the first two runs, so that the
        runs differ in everything that belongs to a worker."""
        kept = [run for run in self._kept if run.plan == CLEAN][:FEWEST]
        courses = [_course_of(run) for run in kept]
        for planned in chain.from_iterable(of_kind(run.events, CellsPlanned) for run in kept):
            self._written.update(planned.memories)
        checked, walls = self._subject.agent.done is not None, list[float]()
        for number in range(len(courses), FEWEST):
            began = monotonic()
            worker = workers[number % 2 % len(workers)]
            try:
                course = await worker.run(Masks(), one_by_one=number == FEWEST - 1, name=f"clean run {number + 1}")
            except OriginalChanged as error:
                yield CellRun(CLEAN, number, (), {}, monotonic() - began, str(error))
                raise
            courses.append(course)
            self._written.update({path: whose or self._written.get(path, "") for path, whose in course.written.items()})
            self._refused.update(course.refused)
            clean_run = name_calls(course, planned_calls(course, Masks()))
            walls.append(monotonic() - began)
            if why := objection(course, number + 1, checked):
                yield replace(run_of(CLEAN, number, clean_run, _same(clean_run)), problem=why)
                raise ConfigError(why)
            if number == 0:
                require_cells(self._asked.only, possible_plans(call.name for call in clean_run.calls if not call.continues))
            events: list[OfAKind] = []
            if number == FEWEST - 1:
                self._plan(courses)
                events.append(self._cells_planned(sum(walls) / len(walls)))
                assert self.clean
                clean_run = self.clean.reference if self.clean.one_by_one else clean_run
            else:
                await asyncio.sleep(max(0.0, began + APART - monotonic()))
            yield run_of(CLEAN, number, clean_run, _same(clean_run), events)
        if self.clean is None:
            self._plan(courses)
        self._clean_made = FEWEST

    def _plan(self, courses: Sequence[AgentCourse]) -> None:
        self.clean = clean_of(courses)
        if any(self._written.values()):
            self._subject = replace(self._subject, remembers=True)
        self.cells = cells_of(self.clean, self._subject, all_forms=self._asked.all_forms, only=self._asked.only)[:MOST_CELLS]
        require_cells(self._asked.only, [cell.plan for cell in cells_of(self.clean, self._subject, all_forms=True)])

    def _cells_planned(self, seconds: float) -> CellsPlanned:
        assert self.clean
        return CellsPlanned(
            calls=tuple(self.clean.calls.values()),
            cells=tuple(cell.plan for cell in self.cells),
            left_out=len(cells_of(self.clean, self._subject, all_forms=True)) - len(self.cells),
            volatile=tuple(self.clean.varying),
            one_by_one=self.clean.one_by_one,
            again=tuple(call for call in self.clean.again if not self._is_meant(call)),
            race=self.clean.race,
            seconds=seconds,
            written=tuple(sorted(path for path, whose in self._written.items() if not whose)[:MOST_WRITTEN]),
            memories=dict(sorted(item for item in self._written.items() if item[1])[:MOST_WRITTEN]),
            refused=tuple(sorted(self._refused)[:MOST_WRITTEN]),
        )

    def _is_meant(self, call: str) -> bool:
        """Return whether the owner says that the task makes a call more than once."""
        return any(fnmatchcase(call.rpartition("#")[0], known) for known in self._subject.meant)

    def _keep(self, run: CellRun) -> None:
        """Take over a run of an earlier session."""
        assert run.judgement
        if run.plan == CONTROL:
            self._void(run.judgement.voids)
            self._unproved.clear()
            self._controls = run.repetition + 1
        elif run.plan == EARLY:
            self._note_early(run.judgement)
        elif run.plan != CLEAN:
            self._add(run)
            self._unproved.append((run.plan, run.repetition))
        elif run.repetition >= FEWEST:
            self._clean_made += 1

    # Cells.

    async def _all(self, workers: Sequence[Worker], cells: Iterable[tuple[ProbeCell, int]]) -> AsyncIterator[CellRun]:
        """Run these cells, each with its run number, and yield each run as it ends."""
        queue = iter(list(cells))
        ended: asyncio.Queue[CellRun | None] = asyncio.Queue()
        tasks = [asyncio.create_task(self._work(number, worker, queue, ended)) for number, worker in enumerate(workers)]
        for task in tasks:
            task.add_done_callback(lambda _: ended.put_nowait(None))
        try:
            left = len(tasks)
            while left:
                run = await ended.get()
                if run is None:
                    left -= 1
                    for task in tasks:
                        if task.done():
                            task.result()
                else:
                    yield run
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _work(
        self, number: int, worker: Worker, queue: Iterable[tuple[ProbeCell, int]], ended: asyncio.Queue[CellRun | None]
    ) -> None:
        """Run cells with one worker. Every tenth run is a control, and so is the last."""
        since = list(self._unproved) if number == 0 else []
        problems, made = 0, 0
        for cell, first in queue:
            if self._is_over():
                break
            settled = self._is_settled(cell.plan) and self._is_damaged(cell)
            for repetition in () if settled else range(first, max(first + 1, AGAIN)):
                run = await self._cell(worker, cell, repetition, ended)
                problems = problems + 1 if run.problem else 0
                if problems > MOST_PROBLEMS:
                    raise ConfigError(f"{problems} cells in a row could not be run: {run.problem}")
                ended.put_nowait(run)
                made += 1
                if run.judgement:
                    self._add(run)
                    since.append((cell.plan, repetition))
                if made % (CONTROL_EVERY - 1) == 0:
                    await self._control(worker, since, ended)
                if self._is_settled(cell.plan) or run.problem:
                    break
            if self._is_damaged(cell):
                made += await self._blame(worker, cell, since, ended)
        if since:
            await self._control(worker, since, ended)

    def _is_settled(self, plan: str) -> bool:
        """Return whether a cell needs no further run: it ran without damage, or its damage was seen a second time."""
        runs = self._judged.get(plan, ())
        judged = [run for run in runs if run.verdict not in UNJUDGED]
        again = not any(run.is_damage for run in judged) or any(same_verdict(*pair) for pair in pairwise(judged))
        return bool(runs) and (again or len(runs) >= AGAIN)

    async def _cell(
        self,
        worker: Worker,
        cell: ProbeCell,
        repetition: int,
        ended: asyncio.Queue[CellRun | None],
        mended: tuple[GatewayMend, ...] = (),
    ) -> CellRun:
        assert self.clean
        began, plan = monotonic(), mended_plan(cell.plan, mended)
        strike = None if {"client", "tool"} & {*mended} else cell.strike
        together = 1 if "lease" in mended else point_of(cell.point).processes
        mends = Mends(mended, self.clean.counts, self.clean.acting, self._replies, together) if mended else None
        try:
            half_way = partial(is_half_way, self.clean)
            course = await worker.run(self.clean.masks, strike, mends=mends, half_way=half_way, name=plan)
            course = name_calls(course, self.clean.calls)
        except OriginalChanged:
            raise
        except ConfigError as error:
            return CellRun(plan, repetition, (), {}, monotonic() - began, str(error))
        if not mended:
            judged = judge(self.clean, course, cell.call, cell.point, cell.form)
            if judged.verdict == "overwritten" and await self._sets(worker, cell, ended):
                why = (
                    "the call sets the number whatever it was: it did so too where the other writer came before the agent began"
                )
                judged = replace(judged, verdict="same", findings=(), why=why)
            return run_of(plan, repetition, course, judged)
        judged = judge(self.clean, course, cell.call)
        if judged.is_damage and "memory" in mended and (left := _call_without_answer(course)):
            why = f"{left} was under way when the agent died, so the journal does not know whether it was done"
            judged = replace(judged, verdict="no_verdict", findings=(), why=why)
        if mends and mends.lacks:
            why = f"the answer of {mends.lacks} is an object that cannot be given again"
            judged = replace(judged, verdict="no_verdict", findings=(), why=why)
        return run_of(plan, repetition, course, replace(judged, point=cell.point, form=cell.form, mended=mended))

    async def _sets(self, worker: Worker, cell: ProbeCell, ended: asyncio.Queue[CellRun | None]) -> bool:
        """Return whether a call that overwrote another writer's number sets it whatever it was. Where the other writer comes
        before the agent begins, such a call leaves the same number, and a call that writes what was read and changed does not.
        A number that is not there yet then is not judged so, nor is one in a run that cannot be made."""
        assert self.clean
        if cell.strike.step in self._subject.meanwhile:
            return False
        if cell.plan not in self._setting:
            strike = replace(cell.strike, early=True)
            try:
                course = await worker.run(self.clean.masks, strike, name=f"{cell.plan}, written early")
            except OriginalChanged:
                raise
            except ConfigError:
                return False
            course = name_calls(course, self.clean.calls)
            judged = judge(self.clean, course, cell.call, cell.point, cell.form)
            is_set = judged.verdict == "overwritten"
            why = f"{cell.plan}: the call {'sets the number whatever it was' if is_set else 'goes by what the number was'}"
            judged = replace(judged, verdict="same" if is_set else "no_verdict", findings=(), why=why)
            ended.put_nowait(run_of(EARLY, len(self._setting), course, judged))
            self._note_early(judged)
        return self._setting[cell.plan]

    def _note_early(self, judged: CellJudged) -> None:
        """Note what a run showed in which another writer came before the agent."""
        self._setting[plan_of(judged.call, judged.point or "")] = judged.verdict == "same"

    def _is_damaged(self, cell: ProbeCell) -> bool:
        return any(run.is_damage for run in self._judged.get(cell.plan, ()))

    async def _blame(
        self, worker: Worker, cell: ProbeCell, since: list[tuple[str, int]], ended: asyncio.Queue[CellRun | None]
    ) -> int:
        """Run a damaged cell again with sets of parts mended, until the minimal sufficient sets are known. Return the number of
        runs."""
        calls, made = self._calls[cell.plan], 0

        async def suffices(mended: frozenset[GatewayMend]) -> bool:
            nonlocal made
            parts = tuple(sorted(mended))
            plan = mended_plan(cell.plan, parts)
            if plan not in self._judged and not self._is_over():
                if not self._replies and "reply" in mended:
                    await self._control(worker, since, ended)
                run = await self._cell(worker, cell, 0, ended, parts)
                ended.put_nowait(run)
                made += 1
                if run.judgement:
                    self._add(run)
                    since.append((plan, 0))
            return any(map(is_enough, self._judged.get(plan, ())))

        if not await minimal_sets(asked_first(calls), suffices) or asks_client(calls):
            await minimal_sets(asked_last(calls), suffices)
        return made

    async def _control(self, worker: Worker, since: list[tuple[str, int]], ended: asyncio.Queue[CellRun | None]) -> None:
        """Run the agent without a strike. If the rows differ from the clean runs, the cells since the last control lose their
        verdicts."""
        assert self.clean
        repetition = self._controls
        self._controls += 1
        course = name_calls(await worker.run(self.clean.masks, name=f"control {repetition + 1}"), self.clean.calls)
        replies = zip(course.calls, course.answers, strict=True)
        asked = [(course.texts[call.arguments], raw) for call, raw in replies if call.door_kind == "model" and raw]
        self._replies = [(len(text), raw) for text, raw in asked]
        judged = judge(self.clean, course)
        if judged.verdict != "same":
            judged = replace(judged, voids=tuple(since))
            self._void(since)
        ended.put_nowait(run_of(CONTROL, repetition, course, judged))
        since.clear()

    def _add(self, run: CellRun) -> None:
        """Keep the verdict of a run. The rows are not kept, since there can be many."""
        assert run.judgement
        findings = tuple(replace(finding, rows=()) for finding in run.judgement.findings)
        if run.judgement.is_damage and not run.judgement.mended:
            self._calls.setdefault(run.plan, of_kind(run.events, GatewayCall))
        self._judged.setdefault(run.plan, []).append(replace(run.judgement, findings=findings))

    def _void(self, cells: Iterable[tuple[str, int]]) -> None:
        for plan, repetition in cells:
            runs = self._judged.get(plan, [])
            if repetition < len(runs):
                runs[repetition] = replace(runs[repetition], verdict="no_verdict", why="the control after it was not the same")

    async def _for_a_bound(self, workers: Sequence[Worker], again: Sequence[ProbeCell]) -> AsyncIterator[CellRun]:
        """Make further clean runs and repeat some cells, as many as a bound needs."""
        assert self.clean
        for number in range(self._clean_made, CLEAN_RUNS):
            worker = workers[number % len(workers)]
            course = name_calls(await worker.run(self.clean.masks, name=f"clean run {number + 1}"), self.clean.calls)
            yield run_of(CLEAN, number, course, judge(self.clean, course))
        second = [(cell, 1) for cell in again if len(self._judged.get(cell.plan, ())) == 1]
        async for run in self._all(workers, second):
            yield run

    def _is_over(self) -> bool:
        return self._until is not None and monotonic() > self._until


def _call_without_answer(course: AgentCourse) -> str:
    """Return a call that was passed on in a life that ended, and that its server never answered; "" if there is none."""
    last = max((call.life for call in course.calls), default=1)
    under_way = (call for call in course.calls if call.life < last and call.passed_on is not None and call.answered is None)
    return next((call.name for call in under_way if call.door_kind != "model" and call.call_class != "read"), "")


def _what_all_share(subject: Subject) -> str:
    """Return in words what all workers would share of a subject; "" if nothing."""
    services = [service.name for service in subject.services if "{port}" not in service.url or not service.command]
    servers = [server.name for config in subject.configs for server in config.servers if server.url]
    return next(iter([*services, *servers]), "")


def _same(course: AgentCourse) -> CellJudged:
    return CellJudged(
        "", None, "", None, None, "same", course.said_done, course.printed, checks=course.checks, on_stdout=course.on_stdout
    )


def _course_of(run: CellRun) -> AgentCourse:
    """Return the course of a recorded clean run."""
    calls = tuple(of_kind(run.events, GatewayCall))
    judged = run.judgement
    course = AgentCourse(
        calls=calls,
        identities=("",) * len(calls),
        readings=tuple(of_kind(run.events, StoresRead)),
        texts=run.texts,
        said_done=judged is None or judged.said_done,
        printed=judged.printed if judged else None,
        checks=judged.checks if judged else (),
        seconds=run.seconds,
    )
    return with_identities(course, Masks())


def same_verdict(former: CellJudged, later: CellJudged) -> bool:
    """Return whether two runs of a cell have the same verdict and the same damaged effects, however often these stand."""
    kinds = [{(finding.kind, finding.effect) for finding in judged.findings} for judged in (former, later)]
    return former.verdict == later.verdict and kinds[0] == kinds[1]


def draw(cells: Sequence[ProbeCell], subject: str) -> list[ProbeCell]:
    """Return the cells that are run again for a bound: ten, or all if there are fewer. The choice is the same each time."""
    return random.Random(f"redrawn {subject}").sample(list(cells), min(CELLS_AGAIN, len(cells)))
