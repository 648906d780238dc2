"""A worker of the probe: it has its own copies of the stores and its own gateway, and runs the agent on them."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from bench.common.digests import Texts, digest_of
from bench.common.errors import ConfigError
from bench.probe.points import point_of
from bench.probe.run.agent_run import AgentRun
from bench.probe.run.box.authority import package_folders
from bench.probe.run.box.box import Box, box_plan, with_names_of_machine
from bench.probe.run.box.closed_network import without_proxies
from bench.probe.run.box.inside import BoxPlan
from bench.probe.run.box.loading import load_server, loader_of
from bench.probe.run.box.refusals import NETWORK_DOOR
from bench.probe.run.gateway.agent_config import expand
from bench.probe.run.gateway.copied_paths import replacement
from bench.probe.run.gateway.database import NO_CALL_TEXT
from bench.probe.run.gateway.fault_injector import CellFault, FaultInjector
from bench.probe.run.gateway.functions import FUNCTION_DOOR
from bench.probe.run.gateway.gateway import NO_CONFIG_PATH, Gateway
from bench.probe.run.gateway.journal import Journal
from bench.probe.run.gateway.mends import Mends
from bench.probe.run.gateway.stdio_servers import SHIM
from bench.probe.run.gateway.subject import CommandWords, OwnersCheck, Subject
from bench.probe.run.gateway.tape import PlayedTape
from bench.probe.run.recorded_form import RecordedForm
from bench.probe.run.secrets import Secrets
from bench.probe.run.services import services_of, until_ready, with_ports
from bench.probe.run.volatile import Masks
from bench.probe.run.witness.place import PrivateFolder
from bench.probe.run.witness.stores import Stores
from bench.record.probe_events import GatewayNoticed
from bench.record.probe_rows import StoreReading
from bench.record.process_events import ProcessEnded, ProcessStarted
from bench.wire.agent_process import AgentProcess
from bench.wire.program import start_hint, start_problem

MAX_FILE_BYTES = 2**30
"""The largest file in bytes that the agent or a service can write."""
CHECK_TIMEOUT_S = 60.0
"""Seconds that a check of the owner's may take."""


class Worker:
    """Runs the agent, one run after another. Use it as an asynchronous context manager.

    Args:
        subject: What is probed.
        stores: This worker's stores, which are not copied yet.
        place: The worker's private folder, which is removed at the end.
        secrets: The values that no record may contain.
        environment: The owner's own variables.
        key: The key of the digests that replace hidden values.

    gateway     the gateway, once the worker is entered
    """

    gateway: Gateway

    def __init__(
        self,
        subject: Subject,
        stores: Stores,
        place: PrivateFolder,
        secrets: Secrets,
        environment: Mapping[str, str] = os.environ,
        key: bytes = b"",
    ):
        self._subject, self._stores, self._place, self._folder = with_ports(subject), stores, place, place.folder
        self._secrets, self._environment, self._key, self._first_digest = secrets, dict(environment), key, ""
        self._exits = AsyncExitStack()
        self._box: Box | None = None

    async def __aenter__(self) -> Self:
        self._exits.callback(self._place.remove)
        try:
            await self._stores.make()
            self._exits.push_async_callback(self._stores.remove)
            self._form = RecordedForm(self._subject, self._secrets, self._stores.replaces, self._key)
            gateway = Gateway(self._subject, self._stores.replaces, self._folder / "gateway", self._stores.databases)
            gateway.outboxes = self._stores.outboxes
            self.gateway = await self._exits.enter_async_context(gateway)
            if self._stores.is_boxed:
                self._box = await self._open_box()
                await gateway.enter_box(self._box)
                self._environment = without_proxies(self._environment)
                self._stores.enter_box(self._box)
        except BaseException:
            await self._exits.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exits.aclose()

    async def _open_box(self) -> Box:
        """Return an open box in which everything that this worker starts runs. Raises ConfigError."""
        subject, layers, gateway = self._subject, self._folder / "layers", self._folder / "gateway"
        layers.mkdir(mode=0o700)
        configs = [config.path for config in subject.configs if config.path != NO_CONFIG_PATH]
        paths, state_folders = zip(*self._stores.places, strict=True) if self._stores.places else ((), ())
        variables = {**self._environment, **subject.agent.environment}
        programs = [subject.agent.start, subject.agent.resume, *(service.command for service in subject.services)]
        programs += [server.command for config in subject.configs for server in config.servers]
        programs += [subject.model.script] if subject.model else []
        owners_paths, commands = (*paths, *configs), [command for command in programs if command]
        program_paths = [shutil.which(command[0], path=variables.get("PATH")) or command[0] for command in commands]
        home = Path(variables.get("HOME", ""))
        folder = subject.agent.folder
        packages = package_folders([folder / program for program in program_paths], [folder, home])
        files = self.gateway.certify(variables, packages)
        sockets, further_paths = self.gateway.sockets, self._stores.beside
        plan = box_plan(
            folder, layers, gateway, owners_paths, commands, state_folders, variables, sockets, files, further_paths
        )
        await self._load_servers(plan, variables)
        box = Box(plan)
        self._exits.callback(box.close)
        await asyncio.to_thread(box.open)
        return box

    async def _load_servers(self, plan: BoxPlan, variables: Mapping[str, str]) -> None:
        """Start each MCP server that a program such as npx loads from a registry, and end it: the files that it loads stay in
        the layers of the box. Raises ConfigError."""
        servers = [server for config in self._subject.configs for server in config.servers if loader_of(server.command)]
        if not servers:
            return
        box, with_copies = Box(with_names_of_machine(plan)), replacement(self._stores.addresses)
        try:
            await asyncio.to_thread(box.open)
            for server in servers:
                server_variables = {
                    **variables,
                    **{name: expand(value, variables) for name, value in server.environment.items()},
                }
                server_variables = {name: with_copies(value) for name, value in server_variables.items()}
                words = [with_copies(expand(word, variables)) for word in server.command]
                if (program := shutil.which(words[0], path=server_variables.get("PATH"))) is None:
                    raise ConfigError(f"the MCP server {server.name}: there is no program {words[0]!r}; install it")
                namespaces, folder = box.loaders_namespaces, self._subject.agent.folder
                await load_server(server.name, (program, *words[1:]), folder, server_variables, namespaces)
        finally:
            await asyncio.to_thread(box.close)

    async def run(
        self,
        masks: Masks,
        fault: CellFault | None = None,
        *,
        one_by_one: bool = False,
        mends: Mends | None = None,
        tape: PlayedTape | None = None,
        name: str = "a run",
        half_way: Callable[[AgentRun], bool] | None = None,
    ) -> AgentRun:
        """Reset the stores, run the agent once from its start to its end, and return what it did.

        Args:
            masks: The parts of arguments that vary, which tell calls apart.
            fault: The fault; None in a clean run.
            one_by_one: Whether calls of tools are forwarded one at a time.
            mends: What the gateway mends.
            tape: The tape that replaces servers and stores.
            name: The run's name in messages.
            half_way: Returns whether the agent gave up half-way in this run, and is started once more, as its owner would.

        Raises:
            OriginalChanged: A store of the owner's has changed, not only its copy.
            ConfigError: A store, a service or the agent cannot be reset or started.
        """
        try:
            return await self._run(masks, fault, one_by_one, mends, tape, half_way)
        finally:
            await self._stores.check_originals(f"in {name}")

    async def _run(
        self,
        masks: Masks,
        fault: CellFault | None,
        one_by_one: bool,
        mends: Mends | None,
        tape: PlayedTape | None,
        half_way: Callable[[AgentRun], bool] | None,
    ) -> AgentRun:
        await self.gateway.end_servers()
        self.gateway.forget_reached()
        await self._stores.reset()
        async with self._services():
            first = await self._first_reading()
            journal = Journal(self._form.value, masks.identity, self._stores)
            processes = _AgentProcesses(self._subject.agent.limit)
            injector = FaultInjector(
                journal, fault, self._subject.patience, processes.kill, one_by_one=one_by_one, mends=mends, tape=tape
            )
            self.gateway.gate, self.gateway.process_number, self.gateway.calls = injector, 1, 0
            journal.begin(first)
            await injector.begin()
            environment = {**self._environment, **self._subject.agent.environment, **self._stores.environment}
            environment["AGENT_FOLDER"] = str(self._folder)
            current = _CurrentRun(journal, injector, processes, Texts(), environment, fault, mends)
            try:
                recorded = await self._run_agent(current, half_way)
            finally:
                injector.is_dead = True
                await self.gateway.end_servers()
                await journal.stop_watching(until_settled=False)
            checks = () if tape else self._subject.checks  # a tape has no stores to query
            answers = [await self._check_answer(check, current) for check in checks]
            written = await asyncio.to_thread(self._box.paths_written) if self._box else {}
            calls = recorded.calls
            if self._box and tape is None:  # without a box a server would open the owner's own files
                calls = await self.gateway.servers.record_claims(calls)
            shown = {self._form.path(path): framework for path, framework in written.items()}
            return replace(recorded, calls=calls, checks=tuple(answers), written=shown)

    async def _first_reading(self) -> StoreReading:
        """Return the reading of the stores after a reset. Raises ConfigError if it differs from the first reading of the first
        run."""
        self._stores.recheck()
        first = await self._stores.reading()
        if self._first_digest not in ("", first.digest):
            raise ConfigError("after a reset the stores are not as they were at first; end what else writes to them")
        self._first_digest = first.digest
        return first

    async def _run_agent(self, current: _CurrentRun, half_way: Callable[[AgentRun], bool] | None) -> AgentRun:
        """Run the agent to its end, and return what it did. Start the agent again after the fault killed it, and once more if
        it gave up half-way, or ended before a held call was delivered and did not say that it was done."""
        injector, processes = current.injector, current.processes
        await self._run_processes(self._subject.agent.start, current)
        if injector.is_dead and processes.in_time:
            processes_of_point = point_of(current.fault.point).processes if current.fault else 1
            await self._start_again(current, current.mends.together if current.mends else processes_of_point)
        await injector.end_delivery()
        recorded = await self._record(current)
        again = bool(half_way and half_way(recorded)) or (injector.holds and processes.in_time and not recorded.said_done)
        if again:
            await self._start_again(current)
        await injector.deliver_held()
        if again or injector.has_delivered_late:
            recorded = replace(await self._record(current), half_way=again)
        return recorded

    async def _start_again(self, current: _CurrentRun, together: int = 1) -> None:
        """Run the agent again after its process has ended, as one process or as several at the same time."""
        agent, words = self._subject.agent, self._subject.agent.resume
        if current.mends and current.fault and current.mends.resets_memory_after(current.fault.point):
            await self._stores.reset_memory()  # an agent without a memory has nothing to resume
            words = agent.start
        current.injector.start_again(together=together > 1)
        self.gateway.process_number += 1
        await self._run_processes(words, current, together)

    async def _record(self, current: _CurrentRun) -> AgentRun:
        """Read the stores until they have settled, and return what the agent did until now."""
        journal, injector, processes, texts = current.journal, current.injector, current.processes, current.texts
        seconds = journal.now()
        await journal.stop_watching(until_settled=False)
        self._stores.recheck()
        await journal.read()
        done, said_done = await self._is_done_and_said(current)
        struck_entry, refusals = injector.struck_call, list(self.gateway.refusals())
        notices = [
            GatewayNoticed(NETWORK_DOOR, self._form.text(line), max(0.0, refusal_time - journal.start))
            for _, line, refusal_time in refusals
        ]
        return AgentRun(
            calls=tuple(self._form.call(entry, texts) for entry in journal.calls),
            identities=tuple(entry.identity for entry in journal.calls),
            readings=tuple(journal.readings),
            lives=(*processes.records, *journal.notices, *notices),
            refused=tuple(dict.fromkeys(self._form.text(address) for address, _, _ in refusals)),
            left_running=tuple(dict.fromkeys(map(self._form.text, processes.left_running))),
            texts=texts,
            struck=struck_entry.call.number if struck_entry and injector.is_delivered else None,
            done=done,
            said_done=said_done,
            printed=digest_of(processes.text),
            on_stdout=texts.keep(processes.on_stdout),
            in_time=processes.in_time,
            code=processes.code,
            seconds=seconds,
            answers=tuple(entry.raw for entry in journal.calls),
            abandoned=injector.abandoned,
        )

    async def _run_processes(self, words: CommandWords, current: _CurrentRun, together: int = 1) -> None:
        """Run one process of the agent to its end, or several at the same time, and record their starts and ends. The calls of
        several processes are recorded as calls of the first process. The agent says that it is done if one process does."""
        number, agent, processes = self.gateway.process_number, self._subject.agent, current.processes
        command, variables = self.gateway.launch(words, current.environment)
        calls, running = self.gateway.calls, list[AgentProcess]()
        try:
            for nth in range(together):
                processes.records.append(ProcessStarted(number + nth, current.journal.now()))
                with tempfile.TemporaryFile() as standard_input:
                    standard_input.write(agent.answers)
                    standard_input.seek(0)
                    started = self._start(command, agent.folder, variables, "the agent", standard_input.fileno())
                started.ended.add_done_callback(lambda _: current.injector.end_meeting())
                running.append(started)
        finally:  # a process that was started is ended even if the next one cannot be started
            await processes.wait(running, waits=len(running) == together)
        await self.gateway.end_servers(busy=False)
        self.gateway.process_number += together - 1
        outputs = [self._form.text(process.output.text) for process in running]
        processes.text = "\n".join(outputs)
        processes.on_stdout = "\n".join(self._form.text(process.on_stdout.text) for process in running)
        current.texts.keep(processes.text)
        self._notice_unused_doors(current.journal)
        for nth, (process, output) in enumerate(zip(running, outputs, strict=True)):
            ended = process.ended.result()
            if ended.failed:
                raise ConfigError(f"the agent cannot be started: {os.strerror(ended.failed)}; {start_hint(ended.failed)}")
            # the exit code of the first process, but 0 if any process ends with 0
            processes.code = ended.code if not nth or ended.code == 0 else processes.code
            processes.left_running += [words for words in process.left_running if str(SHIM) not in words]
            call_count, printed, written = self.gateway.calls - calls, current.texts.keep(output), process.output.written
            why, seconds = processes.why, process.seconds
            processes.records.append(
                ProcessEnded(number + nth, ended.code, ended.signal, seconds, why, call_count, printed, written, None)
            )

    def _notice_unused_doors(self, journal: Journal) -> None:
        """Record why no call came through the door of functions and the doors of databases, if the agent made no call except
        to its model. Raises ConfigError for a function that cannot be wrapped."""
        if self.gateway.functions.unwrappable:
            raise ConfigError(f"functions: {self.gateway.functions.unwrappable[0]}")
        if any(entry.call.kind != "model" for entry in journal.calls):
            return
        if self._subject.functions is not None:
            journal.notice(FUNCTION_DOOR, self.gateway.functions.why_no_call())
        for store in (store for door in self.gateway.databases for store in door.stores if store.is_door):
            journal.notice(store.name, NO_CALL_TEXT)

    def _start(
        self, words: CommandWords, folder: Path, environment: Mapping[str, str], name: str, reads: int | None = None
    ) -> AgentProcess:
        """Start a program, and return its process: the agent if `reads`, the open file of its standard input, is given; else a
        service or a check, which has an empty standard input and another network of the box. `name` is the program in messages.
        Raises ConfigError."""
        working_folder, path = self._copied_folder(folder), environment.get("PATH", os.defpath)
        program = shutil.which(words[0], path=path) if os.sep not in words[0] else str(working_folder / words[0])
        if program is None or not os.path.exists(program):  # noqa: PTH110  `Path.exists` raises without permission
            raise ConfigError(f"{name} cannot be started: there is no program {words[0]!r}; install it, or give its path")
        if why := start_problem(program, path):
            raise ConfigError(f"{name} cannot be started: {words[0]!r} {why}")
        try:
            namespaces: Sequence[int] = ()
            if self._box:
                namespaces = self._box.servers_namespaces if reads is None else self._box.namespaces
            standard_input = subprocess.DEVNULL if reads is None else reads
            return AgentProcess(
                (program, *words[1:]), working_folder, environment, MAX_FILE_BYTES, reads=standard_input, namespaces=namespaces
            )
        except OSError as error:
            raise ConfigError(f"{name} cannot be started in {working_folder}: {error.strerror}; correct its folder") from error

    def _copied_folder(self, folder: Path) -> Path:
        """Return the copy of a folder if the folder is in a store; else the folder itself."""
        for owner, copy in self._stores.replaces.items():
            if folder.is_relative_to(owner):
                return copy / folder.relative_to(owner)
        return folder

    async def _is_done_and_said(self, current: _CurrentRun) -> tuple[bool, bool]:
        """Return whether the task is done, and whether the agent says that it is done. The owner's command or pattern decides;
        without one, exit code 0 within the time limit."""
        agent, processes, environment = self._subject.agent, current.processes, current.environment
        done = said_done = processes.code == 0 and processes.in_time
        if agent.done is not None:
            done = await self._passes(agent.done, environment)
        if isinstance(agent.said_done, str):
            said_done = re.search(agent.said_done, processes.text) is not None
        elif agent.said_done is not None:
            said_done = await self._passes(agent.said_done, environment)
        return done, said_done

    async def _check_answer(self, check: OwnersCheck, current: _CurrentRun) -> str:
        """Return the digest of the answer to an owner's check."""
        if check.sql:
            return current.texts.keep(self._form.rows(await self._stores.query(check.store, check.sql)))
        process = await self._run_to_end(check.command, current.environment)
        return current.texts.keep(self._form.text(f"exit code {process.ended.result().code}\n{process.output.text}"))

    async def _passes(self, words: CommandWords, environment: Mapping[str, str]) -> bool:
        """Return whether an owner's command ends with exit code 0."""
        return (await self._run_to_end(words, environment)).ended.result().code == 0

    async def _run_to_end(self, words: CommandWords, environment: Mapping[str, str]) -> AgentProcess:
        """Run an owner's command until it ends or `CHECK_TIMEOUT_S` are over, and return its process, which has ended."""
        words, variables = self.gateway.with_copies(words, environment)
        process = self._start(words, self._subject.agent.folder, variables, "a check")
        with suppress(TimeoutError):
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                await asyncio.shield(process.ended)
        await process.close()
        return process

    @asynccontextmanager
    async def _services(self) -> AsyncIterator[None]:
        """Start the services that the probe has to start, and wait until they are ready; end them after the block."""
        processes = list[AgentProcess]()
        environment = {
            **self._environment,
            **self._stores.environment,
            "AGENT_FOLDER": str(self._folder),
            **self.gateway.roots,
        }
        try:
            for service in services_of(self._subject):
                words, variables = self.gateway.with_copies(service.command, environment)
                processes.append(self._start(words, self._subject.agent.folder, variables, service.name))
                await until_ready(service, processes[-1], self._box)
            yield
        finally:
            for process in processes:
                await process.close()


@dataclass
class _CurrentRun:
    """The current run of the agent.

    journal      its calls and readings
    injector     its gate
    processes    the agent's processes
    texts        the texts of its records
    environment  the variables of the agent
    fault        the fault; None in a clean run
    mends        what the gateway mends
    """

    journal: Journal
    injector: FaultInjector
    processes: _AgentProcesses
    texts: Texts
    environment: Mapping[str, str]
    fault: CellFault | None
    mends: Mends | None


class _AgentProcesses:
    """The processes of the agent in one run.

    in_time   whether they ended within the time limit
    code      the exit code of the last process
    text      the output of the last process; `on_stdout`: its standard output alone
    why       why the last process was ended by the probe; "" if it ended by itself
    left_running   the commands of processes that still ran when the agent had ended
    records   the starts and ends of all processes
    """

    def __init__(self, seconds: float):
        self._remaining_s = seconds
        self._running: Sequence[AgentProcess] = ()
        self.in_time, self.text, self.on_stdout, self.why = True, "", "", ""
        self.code: int | None = None
        self.left_running: list[str] = []
        self.records: list[ProcessStarted | ProcessEnded] = []

    async def kill(self) -> None:
        """Kill the running processes."""
        self.why = "crash"
        for process in self._running:
            process.kill()

    async def wait(self, processes: Sequence[AgentProcess], *, waits: bool = True) -> None:
        """Wait until the processes have ended, or end them when their time is over. Without `waits` end them at once."""
        self._running, self.why = processes, ""
        try:
            async with asyncio.timeout(max(0.0, self._remaining_s)):
                if waits:
                    await asyncio.wait([process.ended for process in processes])
        except TimeoutError:
            self.in_time, self.why = False, "time limit"
        finally:
            for process in processes:
                await process.close()
            self._remaining_s -= max((process.seconds for process in processes), default=0.0)
