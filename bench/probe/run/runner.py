"""A worker: it has its own copies of the stores and its own gateway, and runs the agent on them."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from bench.common.digests import Texts, digest_of
from bench.common.errors import ConfigError
from bench.probe.points import point_of
from bench.probe.run.box.authority import package_folders
from bench.probe.run.box.box import Box, box_plan, with_names_of_machine
from bench.probe.run.box.closed_network import without_proxies
from bench.probe.run.box.inside import BoxPlan
from bench.probe.run.box.loading import load_server, loader_of
from bench.probe.run.box.refusals import NETWORK
from bench.probe.run.course import AgentCourse
from bench.probe.run.gateway.agent_config import expand
from bench.probe.run.gateway.copied_paths import replacement
from bench.probe.run.gateway.database import UNENTERED
from bench.probe.run.gateway.functions import FUNCTION
from bench.probe.run.gateway.gateway import NO_FILE, Gateway
from bench.probe.run.gateway.journal import Journal
from bench.probe.run.gateway.mends import Mends
from bench.probe.run.gateway.striker import CellStrike, Striker
from bench.probe.run.gateway.subject import CommandWords, OwnersCheck, Subject
from bench.probe.run.gateway.tape import PlayedTape
from bench.probe.run.recorded_form import RecordedForm
from bench.probe.run.secrets import Secrets
from bench.probe.run.services import services_of, until_ready, with_ports
from bench.probe.run.volatile import Masks
from bench.probe.run.witness.place import Place
from bench.probe.run.witness.stores import Stores
from bench.record.probe_events import GatewayNoticed
from bench.record.process_events import ProcessEnded, ProcessStarted
from bench.wire.agent_process import AgentProcess
from bench.wire.program import hint, why_not

LARGEST = 2**30
"""Bytes of the largest file that the agent or a service can write."""
CHECK = 60.0
"""Seconds that a check of the owner's may take."""


class Worker:
    """Runs courses of the agent, one after another. Use it as an asynchronous context manager.

    Args:
        subject: What is probed.
        stores: This worker's stores, of which nothing is made yet.
        place: The private folder of this worker, which is removed at its end.
        secrets: What no record may contain.
        environment: The owner's own variables.
        key: Keys the digests that stand for hidden values; at most 64 bytes.

    gateway     through which the agent reaches servers, services and model; there once the worker is entered
    """

    gateway: Gateway

    def __init__(
        self,
        subject: Subject,
        stores: Stores,
        place: Place,
        secrets: Secrets,
        environment: Mapping[str, str] = os.environ,
        key: bytes = b"",
    ):
        self._subject, self._stores, self._place, self._folder = with_ports(subject), stores, place, place.folder
        self._secrets, self._environment, self._key, self._first = secrets, dict(environment), key, ""
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
                self._box = await self._opened_box()
                await gateway.enter(self._box)
                self._environment = without_proxies(self._environment)
                self._stores.enter(self._box)
        except BaseException:
            await self._exits.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exits.aclose()

    async def _opened_box(self) -> Box:
        """Return the box in which all that this worker starts runs. Raises ConfigError."""
        subject, layers, gateway = self._subject, self._folder / "layers", self._folder / "gateway"
        layers.mkdir(mode=0o700)
        configs = [config.path for config in subject.configs if config.path != NO_FILE]
        paths, places = zip(*self._stores.places, strict=True) if self._stores.places else ((), ())
        variables = {**self._environment, **subject.agent.environment}
        programs = [subject.agent.start, subject.agent.resume, *(service.command for service in subject.services)]
        programs += [server.command for config in subject.configs for server in config.servers]
        programs += [subject.model.script] if subject.model else []
        owners, words = (*paths, *configs), [each for each in programs if each]
        located = [shutil.which(each[0], path=variables.get("PATH")) or each[0] for each in words]
        home = Path(variables.get("HOME", ""))
        packages = package_folders([subject.agent.folder / each for each in located], [subject.agent.folder, home])
        files = self.gateway.certify(variables, packages)
        folder, sockets = subject.agent.folder, self.gateway.sockets
        beside = self._stores.beside
        plan = box_plan(folder, layers, gateway, owners, words, places, variables, sockets, files, beside)
        await self._load(plan, variables)
        box = Box(plan)
        self._exits.callback(box.close)
        await asyncio.to_thread(box.open)
        return box

    async def _load(self, plan: BoxPlan, variables: Mapping[str, str]) -> None:
        """Have each MCP server loaded that a program such as npx starts, in a box of its own whose layers keep what was loaded.
        Raises ConfigError."""
        servers = [server for config in self._subject.configs for server in config.servers if loader_of(server.command)]
        if not servers:
            return
        box, copies = Box(with_names_of_machine(plan)), replacement(self._stores.addresses)
        try:
            await asyncio.to_thread(box.open)
            for server in servers:
                given = {**variables, **{name: expand(value, variables) for name, value in server.environment.items()}}
                given = {name: copies(value) for name, value in given.items()}
                words = [copies(expand(word, variables)) for word in server.command]
                if (program := shutil.which(words[0], path=given.get("PATH"))) is None:
                    raise ConfigError(f"the MCP server {server.name}: there is no program {words[0]!r}; install it")
                inside, folder = box.loaders_namespaces, self._subject.agent.folder
                await load_server(server.name, (program, *words[1:]), folder, given, inside)
        finally:
            await asyncio.to_thread(box.close)

    async def run(
        self,
        masks: Masks,
        strike: CellStrike | None = None,
        *,
        one_by_one: bool = False,
        mends: Mends | None = None,
        tape: PlayedTape | None = None,
        name: str = "a run",
        half_way: Callable[[AgentCourse], bool] | None = None,
    ) -> AgentCourse:
        """Reset the stores, run the agent once from its start to its end, and return what it did.

        Args:
            masks: Tell calls apart.
            strike: What is struck, if anything is.
            one_by_one: Whether calls of tools are let through one at a time.
            mends: What the gateway mends, if anything.
            tape: What stands for servers and stores, if a tape does.
            name: The run's name, for a person.
            half_way: Says of a course that has ended whether the agent is started once more, as its owner would.

        Raises:
            OriginalChanged: A store of the owner's has changed, and not its copy alone.
            ConfigError: A store, a service or the agent cannot be brought to where it begins.
        """
        try:
            return await self._run(masks, strike, one_by_one, mends, tape, half_way)
        finally:
            await self._stores.check_originals(f"in {name}")

    async def _run(
        self,
        masks: Masks,
        strike: CellStrike | None,
        one_by_one: bool,
        mends: Mends | None,
        tape: PlayedTape | None,
        half_way: Callable[[AgentCourse], bool] | None,
    ) -> AgentCourse:
        await self.gateway.end_servers()
        self.gateway.begin()
        await self._stores.reset()
        async with self._services():
            self._stores.recheck()
            first = await self._stores.reading()
            if self._first not in ("", first.digest):
                raise ConfigError("after a reset the stores are not as they were at first; end what else writes to them")
            self._first = first.digest
            journal = Journal(self._form.value, masks.identity, self._stores)
            life = _Lives(self._subject.agent.limit)
            striker = Striker(journal, strike, self._subject.patience, life.kill, one_by_one=one_by_one, mends=mends, tape=tape)
            self.gateway.gate, self.gateway.life, self.gateway.calls = striker, 1, 0
            journal.begin(first)
            await striker.begin()
            texts = Texts()
            environment = {**self._environment, **self._subject.agent.environment, **self._stores.environment}
            environment["AGENT_FOLDER"] = str(self._folder)

            async def course() -> AgentCourse:
                seconds = journal.now()
                await journal.rest(until_settled=False)
                self._stores.recheck()
                await journal.read()
                done, said_done = await self._claims(life, environment)
                struck, refused = striker.struck, list(self.gateway.refusals())
                notices = [
                    GatewayNoticed(NETWORK, self._form.text(line), max(0.0, at - journal.start)) for _, line, at in refused
                ]
                return AgentCourse(
                    calls=tuple(self._form.call(entry, texts) for entry in journal.calls),
                    identities=tuple(entry.identity for entry in journal.calls),
                    readings=tuple(journal.readings),
                    lives=(*life.records, *journal.notices, *notices),
                    refused=tuple(dict.fromkeys(self._form.text(place) for place, _, _ in refused)),
                    texts=texts,
                    struck=struck.call.number if struck and striker.delivered else None,
                    done=done,
                    said_done=said_done,
                    printed=digest_of(life.text),
                    on_stdout=texts.keep(life.on_stdout),
                    in_time=life.in_time,
                    code=life.code,
                    seconds=seconds,
                    answers=tuple(entry.raw for entry in journal.calls),
                    abandoned=striker.abandoned,
                )

            async def live_again(together: int = 1) -> None:
                agent, words = self._subject.agent, self._subject.agent.resume
                if mends and strike and mends.forgets_after(strike.point):
                    await self._stores.forget()
                    words = agent.start
                striker.start_again(together=together > 1)
                self.gateway.life += 1
                await self._live(words, environment, life, journal, texts, striker, together)

            try:
                await self._live(self._subject.agent.start, environment, life, journal, texts, striker)
                if striker.dead and life.in_time:
                    twice = point_of(strike.point).processes if strike else 1
                    await live_again(mends.together if mends else twice)
                await striker.end_delivery()
                made = await course()
                again = bool(half_way and half_way(made)) or (striker.holds and life.in_time and not made.said_done)
                if again:
                    await live_again()
                await striker.deliver_held()
                if again or striker.has_delivered:
                    made = replace(await course(), half_way=again)
            finally:
                striker.dead = True
                await self.gateway.end_servers()
                await journal.rest(until_settled=False)
            checks = () if tape else self._subject.checks  # a tape has no stores to ask
            answers = [await self._answer(check, environment, texts) for check in checks]
            written = await asyncio.to_thread(self._box.paths_written) if self._box else {}
            shown = {self._form.path(path): whose for path, whose in written.items()}
            calls = made.calls
            if self._box and tape is None:  # without a box a path of its own would be real once more
                calls = await self.gateway.ask_for_tools(calls)
            return replace(made, calls=calls, checks=tuple(answers), written=shown)

    async def _live(
        self,
        words: CommandWords,
        environment: Mapping[str, str],
        life: _Lives,
        journal: Journal,
        texts: Texts,
        striker: Striker,
        together: int = 1,
    ) -> None:
        """Run the agent's process to its end, or as many at the same time, and record their starts and ends. Of several the
        calls are those of the first one's life, and one that says that it is done speaks for all."""
        number = self.gateway.life
        command, variables = self.gateway.launch(words, environment)
        calls, processes = self.gateway.calls, list[AgentProcess]()
        try:
            for nth in range(together):
                life.records.append(ProcessStarted(number + nth, journal.now()))
                with tempfile.TemporaryFile() as answers:
                    answers.write(self._subject.agent.answers)
                    answers.seek(0)
                    started = self._start(command, self._subject.agent.folder, variables, "the agent", answers.fileno())
                started.ended.add_done_callback(lambda _: striker.part())
                processes.append(started)
        finally:  # what was started is ended, also where the next one cannot be
            await life.live(processes, waits=len(processes) == together)
        await self.gateway.end_servers(busy=False)
        self.gateway.life += together - 1
        texts_shown = [self._form.text(process.output.text) for process in processes]
        life.text = "\n".join(texts_shown)
        life.on_stdout = "\n".join(self._form.text(process.on_stdout.text) for process in processes)
        texts.keep(life.text)
        if self.gateway.functions.refused:
            raise ConfigError(f"functions: {self.gateway.functions.refused[0]}")
        if self._subject.functions is not None and all(entry.call.kind == "model" for entry in journal.calls):
            journal.notice(FUNCTION, self.gateway.functions.why_unentered())
        for store in (store for door in self.gateway.databases for store in door.stores if store.is_door):
            if all(entry.call.kind == "model" for entry in journal.calls):
                journal.notice(store.name, UNENTERED)
        for nth, (process, text) in enumerate(zip(processes, texts_shown, strict=True)):
            ended = process.ended.result()
            if ended.failed:
                raise ConfigError(f"the agent cannot be started: {os.strerror(ended.failed)}; {hint(ended.failed)}")
            life.code = ended.code if not nth or ended.code == 0 else life.code
            asked, printed, written = self.gateway.calls - calls, texts.keep(text), process.output.written
            life.records.append(
                ProcessEnded(number + nth, ended.code, ended.signal, process.seconds, life.why, asked, printed, written, None)
            )

    def _start(
        self, words: CommandWords, folder: Path, environment: Mapping[str, str], who: str, reads: int | None = None
    ) -> AgentProcess:
        """Start the agent, which `reads` an open file, or a service or a check, which is in another network of the box."""
        place, path = self._placed_folder(folder), environment.get("PATH", os.defpath)
        program = shutil.which(words[0], path=path) if os.sep not in words[0] else str(place / words[0])
        if program is None or not os.path.exists(program):  # noqa: PTH110  `Path.exists` raises without permission
            raise ConfigError(f"{who} cannot be started: there is no program {words[0]!r}; install it, or give its path")
        if why := why_not(program, path):
            raise ConfigError(f"{who} cannot be started: {words[0]!r} {why}")
        try:
            inside = () if self._box is None else self._box.servers_namespaces if reads is None else self._box.namespaces
            standard = subprocess.DEVNULL if reads is None else reads
            return AgentProcess((program, *words[1:]), place, environment, LARGEST, reads=standard, namespaces=inside)
        except OSError as error:
            raise ConfigError(f"{who} cannot be started in {place}: {error.strerror}; correct its folder") from error

    def _placed_folder(self, folder: Path) -> Path:
        """Return a folder, or its copy if it lies in a store."""
        for owner, copy in self._stores.replaces.items():
            if folder.is_relative_to(owner):
                return copy / folder.relative_to(owner)
        return folder

    async def _claims(self, life: _Lives, environment: Mapping[str, str]) -> tuple[bool, bool]:
        """Return whether the task is done, and whether the agent says so."""
        agent, passes = self._subject.agent, life.code == 0 and life.in_time
        done = passes if agent.done is None else await self._passes(agent.done, environment)
        if isinstance(agent.said_done, str):
            return done, re.search(agent.said_done, life.text) is not None
        return done, passes if agent.said_done is None else await self._passes(agent.said_done, environment)

    async def _answer(self, check: OwnersCheck, environment: Mapping[str, str], texts: Texts) -> str:
        """Return the digest of what a check of the owner's answers."""
        if check.sql:
            return texts.keep(self._form.text(await self._stores.query(check.store, check.sql)))
        process = await self._run_to_end(check.command, environment)
        return texts.keep(self._form.text(f"exit code {process.ended.result().code}\n{process.output.text}"))

    async def _passes(self, words: CommandWords, environment: Mapping[str, str]) -> bool:
        """Return whether a command of the owner's ends with exit code 0."""
        return (await self._run_to_end(words, environment)).ended.result().code == 0

    async def _run_to_end(self, words: CommandWords, environment: Mapping[str, str]) -> AgentProcess:
        """Run a command of the owner's to its end."""
        words, variables = self.gateway.with_copies(words, environment)
        process = self._start(words, self._subject.agent.folder, variables, "a check")
        with suppress(TimeoutError):
            async with asyncio.timeout(CHECK):
                await asyncio.shield(process.ended)
        await process.close()
        return process

    @asynccontextmanager
    async def _services(self) -> AsyncIterator[None]:
        """Start the services that the probe has to start, and wait until they are ready."""
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


class _Lives:
    """The lives of the agent in one course: the running processes, the time that is left, and how the last life ended."""

    def __init__(self, seconds: float):
        self._left = seconds
        self._processes: Sequence[AgentProcess] = ()
        self.in_time, self.code, self.text, self.on_stdout, self.why = True, None, "", "", ""
        self.records: list[ProcessStarted | ProcessEnded] = []

    code: int | None

    async def kill(self) -> None:
        self.why = "crash"
        for process in self._processes:
            process.kill()

    async def live(self, processes: Sequence[AgentProcess], *, waits: bool = True) -> None:
        """Wait until the processes have ended, and end them if their time is over, or if nobody `waits`."""
        self._processes, self.why = processes, ""
        try:
            async with asyncio.timeout(max(0.0, self._left)):
                if waits:
                    await asyncio.wait([process.ended for process in processes])
        except TimeoutError:
            self.in_time, self.why = False, "time limit"
        finally:
            for process in processes:
                await process.close()
            self._left -= max((process.seconds for process in processes), default=0.0)
