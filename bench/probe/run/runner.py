"""A worker: it has its own copies of the stores and its own gateway, and runs the agent on them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import JsonValue

from bench.common.digests import Texts, digest_of
from bench.common.errors import ConfigError, one_line
from bench.probe.points import point_of
from bench.probe.run.box.authority import package_folders
from bench.probe.run.box.box import Box, box_plan, with_names_of_machine
from bench.probe.run.box.closed_network import without_proxies
from bench.probe.run.box.inside import BoxPlan
from bench.probe.run.box.loading import load_server, loader_of
from bench.probe.run.box.refusals import NETWORK
from bench.probe.run.course import AgentCourse
from bench.probe.run.gateway.agent_config import expanded
from bench.probe.run.gateway.copied_paths import replacement
from bench.probe.run.gateway.database import UNENTERED
from bench.probe.run.gateway.functions import FUNCTION
from bench.probe.run.gateway.gateway import NO_FILE, Gateway
from bench.probe.run.gateway.journal import Journal, JournaledCall
from bench.probe.run.gateway.mends import Mends
from bench.probe.run.gateway.striker import CellStrike, Striker
from bench.probe.run.gateway.subject import CommandWords, OwnersCheck, Subject
from bench.probe.run.gateway.tape import PlayedTape
from bench.probe.run.secrets import Secrets
from bench.probe.run.volatile import Masks
from bench.probe.run.witness.place import Place
from bench.probe.run.witness.stores import Stores
from bench.record.probe.events import GatewayCall, GatewayNoticed
from bench.record.worlds.process_events import ProcessEnded, ProcessStarted
from bench.wire.blotting import BLOT
from bench.wire.processes.agent_process import AgentProcess
from bench.wire.processes.program import hint, why_not

LARGEST = 2**30
"""Bytes of the largest file that the agent or a service can write."""
HEALTHY, LOOK_AGAIN = 30.0, 0.05
"""Seconds until a service must be ready, and between two looks."""
CHECK = 60.0
"""Seconds that a check of the owner's may take."""
UNHEALTHY = 500
HIDDEN = "(hidden)"


class Worker:
    """Runs courses of the agent, one after another. Use it as an asynchronous context manager.

    Args:
        subject: What is probed.
        stores: This worker's stores, of which nothing is made yet.
        place: The private folder of this worker, which is removed at its end.
        secrets: What no record may contain.
        environment: The owner's own variables.
        key: Keys the digests that stand for hidden values; at most 64 bytes.
    """

    def __init__(
        self,
        subject: Subject,
        stores: Stores,
        place: Place,
        secrets: Secrets,
        environment: Mapping[str, str] = os.environ,
        key: bytes = b"",
    ):
        self._subject, self._stores, self._place, self._folder = _with_ports(subject), stores, place, place.folder
        self._secrets, self._environment = secrets, dict(environment)
        self._first, self._key = "", key
        self._exits = AsyncExitStack()
        self._box: Box | None = None

    async def __aenter__(self) -> Self:
        self._exits.callback(self._place.remove)
        try:
            await self._stores.make()
            self._exits.push_async_callback(self._stores.remove)
            self._names = owners_names(self._stores.replaces, self._subject.agent.folder)
            gateway = Gateway(self._subject, self._stores.replaces, self._folder / "gateway", self._stores.databases)
            gateway.outboxes = self._stores.outboxes
            self._gateway = await self._exits.enter_async_context(gateway)
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
        files = self._gateway.certify(variables, packages)
        folder, sockets = subject.agent.folder, self._gateway.sockets
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
                given = {**variables, **{name: expanded(value, variables) for name, value in server.environment.items()}}
                given = {name: copies(value) for name, value in given.items()}
                words = [copies(expanded(word, variables)) for word in server.command]
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
        await self._gateway.end_servers()
        self._gateway.begin()
        await self._stores.reset()
        async with self._services():
            self._stores.recheck()
            first = await self._stores.reading()
            if self._first not in ("", first.digest):
                raise ConfigError("after a reset the stores are not as they were at first; end what else writes to them")
            self._first = first.digest
            journal = Journal(self._tidy, masks.identity, self._stores)
            life = _Lives(self._subject.agent.limit)
            striker = Striker(journal, strike, self._subject.patience, life.kill, one_by_one=one_by_one, mends=mends, tape=tape)
            self._gateway.gate, self._gateway.life, self._gateway.calls = striker, 1, 0
            journal.begin(first)
            texts = Texts()
            environment = {**self._environment, **self._subject.agent.environment, **self._stores.environment}
            environment["AGENT_FOLDER"] = str(self._folder)

            async def course() -> AgentCourse:
                seconds = journal.now()
                await journal.rest(until_settled=False)
                self._stores.recheck()
                await journal.read()
                done, said_done = await self._claims(life, environment)
                struck, refused = striker.struck, list(self._gateway.refused())
                notices = [GatewayNoticed(NETWORK, self._shown(line), max(0.0, at - journal.start)) for _, line, at in refused]
                return AgentCourse(
                    calls=tuple(self._call_of(entry, texts) for entry in journal.calls),
                    identities=tuple(entry.identity for entry in journal.calls),
                    readings=tuple(journal.readings),
                    lives=(*life.records, *journal.notices, *notices),
                    refused=tuple(dict.fromkeys(self._shown(place) for place, _, _ in refused)),
                    texts=texts,
                    struck=struck.call.number if struck and striker.delivered else None,
                    done=done,
                    said_done=said_done,
                    printed=digest_of(life.text),
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
                self._gateway.life += 1
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
                await self._gateway.end_servers()
                await journal.rest(until_settled=False)
            checks = () if tape else self._subject.checks  # a tape has no stores to ask
            answers = [await self._answer(check, environment, texts) for check in checks]
            written = await asyncio.to_thread(self._box.paths_written) if self._box else {}
            shown = {self._place_in_words(path): whose for path, whose in written.items()}
            calls = made.calls
            if self._box and tape is None:  # without a box a path of its own would be real once more
                calls = await self._gateway.ask_for_tools(calls)
            return replace(made, calls=calls, checks=tuple(answers), written=shown)

    @property
    def seen(self) -> Iterable[tuple[str, str]]:
        """What the agent's Pythons told of what they load and start."""
        return self._gateway.seen

    @property
    def handshakes(self) -> Mapping[str, dict[str, Any]]:
        """The answers of each MCP server to messages that are no calls."""
        return self._gateway.handshakes

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
        number = self._gateway.life
        command, variables = self._gateway.launch(words, environment)
        calls, processes = self._gateway.calls, list[AgentProcess]()
        try:
            for nth in range(together):
                life.records.append(ProcessStarted(number + nth, journal.now()))
                with tempfile.TemporaryFile() as answers:
                    answers.write(self._subject.agent.answers)
                    answers.seek(0)
                    started = self._started(command, self._subject.agent.folder, variables, "the agent", answers.fileno())
                started.ended.add_done_callback(lambda _: striker.part())
                processes.append(started)
        finally:  # what was started is ended, also where the next one cannot be
            await life.live(processes, waits=len(processes) == together)
        await self._gateway.end_servers(busy=False)
        self._gateway.life += together - 1
        texts_shown = [self._shown(process.output.text) for process in processes]
        life.text = "\n".join(texts_shown)
        life.on_stdout = "\n".join(self._shown(process.on_stdout.text) for process in processes)
        texts.keep(life.text)
        if self._gateway.functions.refused:
            raise ConfigError(f"functions: {self._gateway.functions.refused[0]}")
        if self._subject.functions is not None and all(entry.call.kind == "model" for entry in journal.calls):
            journal.notice(FUNCTION, self._gateway.functions.unentered())
        for store in (store for door in self._gateway.databases for store in door.stores if store.is_door):
            if all(entry.call.kind == "model" for entry in journal.calls):
                journal.notice(store.name, UNENTERED)
        for nth, (process, text) in enumerate(zip(processes, texts_shown, strict=True)):
            ended = process.ended.result()
            if ended.failed:
                raise ConfigError(f"the agent cannot be started: {os.strerror(ended.failed)}; {hint(ended.failed)}")
            life.code = ended.code if not nth or ended.code == 0 else life.code
            asked, printed, written = self._gateway.calls - calls, texts.keep(text), process.output.written
            life.records.append(
                ProcessEnded(number + nth, ended.code, ended.signal, process.seconds, life.why, asked, printed, written, None)
            )

    def _started(
        self, words: CommandWords, folder: Path, environment: Mapping[str, str], who: str, reads: int | None = None
    ) -> AgentProcess:
        """Start the agent, which `reads` an open file, or a service or a check, which is in another network of the box."""
        place, path = self._placed(folder), environment.get("PATH", os.defpath)
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

    def _placed(self, folder: Path) -> Path:
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

    def _call_of(self, entry: JournaledCall, texts: Texts) -> GatewayCall:
        """Return a call in the form in which it can be recorded: a service's path can hold a secret. What the owner says about
        a tool overrides what the tool claims."""
        call = call_of(entry, texts)
        reads = True if any(fnmatchcase(f"{call.door}.{call.tool}", known) for known in self._subject.reads) else call.reads
        return replace(call, tool=self._shown(call.tool), reads=reads)

    async def _answer(self, check: OwnersCheck, environment: Mapping[str, str], texts: Texts) -> str:
        """Return the digest of what a check of the owner's answers."""
        if check.sql:
            return texts.keep(self._shown(await self._stores.query(check.store, check.sql)))
        process = await self._ended(check.command, environment)
        return texts.keep(self._shown(f"exit code {process.ended.result().code}\n{process.output.text}"))

    async def _passes(self, words: CommandWords, environment: Mapping[str, str]) -> bool:
        """Return whether a command of the owner's ends with exit code 0."""
        return (await self._ended(words, environment)).ended.result().code == 0

    async def _ended(self, words: CommandWords, environment: Mapping[str, str]) -> AgentProcess:
        """Run a command of the owner's to its end."""
        words, variables = self._gateway.replaced(words, environment)
        process = self._started(words, self._subject.agent.folder, variables, "a check")
        with suppress(TimeoutError):
            async with asyncio.timeout(CHECK):
                await asyncio.shield(process.ended)
        await process.close()
        return process

    def _place_in_words(self, path: str) -> str:
        """Return a path as its owner would write it: from the agent's folder, or from the home."""
        for folder, begins in ((self._subject.agent.folder.resolve(), ""), (Path.home(), "~/")):
            if Path(path).is_relative_to(folder):
                return self._shown(f"{begins}{Path(path).relative_to(folder)}")
        return self._shown(path)

    @asynccontextmanager
    async def _services(self) -> AsyncIterator[None]:
        """Start the services that the probe has to start, and wait until they are ready."""
        starts = [(service.name, service.command, service.url, service.health) for service in self._subject.services]
        if model := self._subject.model:
            starts.append(("the model's script", model.script, model.url, ""))
        processes = list[AgentProcess]()
        environment = {
            **self._environment,
            **self._stores.environment,
            "AGENT_FOLDER": str(self._folder),
            **self._gateway.roots,
        }
        try:
            for name, command, url, health in starts:
                if command:
                    words, variables = self._gateway.replaced(command, environment)
                    processes.append(self._started(words, self._subject.agent.folder, variables, name))
                    await _ready(name, url, health, processes[-1], self._box)
            yield
        finally:
            for process in processes:
                await process.close()

    def _tidy(self, value: JsonValue) -> JsonValue:
        """Return a value in the form in which it can be recorded: without secrets and hidden values, and with the owner's names
        of the stores."""
        hide = frozenset(map(str.casefold, self._subject.hide))
        try:
            return self._tidied(value, hide)
        except RecursionError:
            return "(nested too deeply)"

    def _tidied(self, value: JsonValue, hide: frozenset[str]) -> JsonValue:
        if isinstance(value, dict):
            return {
                self._shown(name): self._hidden(inner)
                if name.casefold() in hide
                else BLOT
                if isinstance(inner, str) and self._secrets.learn(name, inner)
                else self._tidied(inner, hide)
                for name, inner in value.items()
            }
        if isinstance(value, list):
            return [self._tidied(inner, hide) for inner in value]
        if not isinstance(value, str):
            return value
        if hide and value[:1] in ("{", "["):
            with suppress(ValueError):
                return json.dumps(self._tidied(json.loads(value), hide), ensure_ascii=False)
        return self._shown(value)

    def _hidden(self, value: JsonValue) -> str:
        """Return a replacement for a hidden value. Equal values have equal replacements, and only the holder of the key can
        find out the value."""
        content = json.dumps(value, sort_keys=True).encode()
        return f"{HIDDEN} {hashlib.blake2b(content, digest_size=10, key=self._key).hexdigest()}"

    def _shown(self, text: str) -> str:
        for copy, owner in self._names.items():
            text = text.replace(copy, owner)
        return self._secrets.blot(text)


def owners_names(replaces: Mapping[str, str], folder: Path) -> Mapping[str, str]:
    """Return the names of the copies -> the owner's names. A path is also replaced in the form in which the agent's folder sees
    it."""
    names = {new: old for old, new in reversed(list(replaces.items()))}
    return names | {os.path.relpath(new, folder.resolve()): old for new, old in names.items() if Path(new).is_absolute()}


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


def call_of(entry: JournaledCall, texts: Texts) -> GatewayCall:
    """Return a journaled call in the form of a record. `texts` keeps its arguments and its answer."""
    call = entry.call
    model = call.arguments.get("model") if call.kind == "model" and isinstance(call.arguments, dict) else ""
    return GatewayCall(
        number=call.number,
        name="",
        door=call.door,
        door_kind=call.kind,
        tool=call.tool,
        call_class="model" if call.kind == "model" else "unseen",
        reads=call.reads,
        arguments=texts.keep(entry.arguments),
        answer=None if entry.answer is None else texts.keep(entry.answer),
        life=call.life,
        wire=call.wire,
        arrived=entry.arrived,
        passed_on=entry.passed_on,
        answered=entry.answered,
        given=entry.given,
        failed=call.failed,
        point=entry.point,
        form=call.form if entry.point else "",
        given_otherwise=entry.given_otherwise,
        went=entry.went,
        continues=call.continues,
        tokens_in=call.kept.get("tokens_in", 0),
        tokens_out=call.kept.get("tokens_out", 0),
        model=model if isinstance(model, str) else "",
        idempotent=call.idempotent,
        key=digest_of(call.key) if call.key else "",
    )


def _with_ports(subject: Subject) -> Subject:
    """Return the subject with a free port for each service, and for the model's script."""
    services = []
    for service in subject.services:
        port = str(_free_port()) if "{port}" in service.url else ""
        words = tuple(word.replace("{port}", port) for word in service.command)
        services.append(replace(service, url=service.url.replace("{port}", port), command=words))
    model = subject.model
    if model and model.script:
        port = str(_free_port())
        script = tuple(word.replace("{port}", port) for word in model.script)
        model = replace(model, script=script, url=f"http://127.0.0.1:{port}{model.suffix}")
    return replace(subject, services=tuple(services), model=model)


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


async def _ready(name: str, url: str, health: str, process: AgentProcess, box: Box | None) -> None:
    """Wait until a service is ready. Raises ConfigError if it is not ready in time, or has ended."""
    until = asyncio.get_running_loop().time() + HEALTHY
    while not await asyncio.to_thread(_answers, url, health, box):
        late = asyncio.get_running_loop().time() > until
        if late or process.ended.done():
            await process.close()
            how = f"was not ready within {HEALTHY:g} s" if late else "ended before it was ready"
            printed = one_line(process.output.last_line or "nothing", 200)
            raise ConfigError(f"{name} {how} at {url}; see its command and its `health`. It printed last: {printed}")
        await asyncio.sleep(LOOK_AGAIN)


def _answers(url: str, health: str, box: Box | None) -> bool:
    """Return whether a service accepts connections. If it has a health path, return whether that answers with a status below
    500."""
    parts = urlsplit(url)
    host, port = parts.hostname or "127.0.0.1", parts.port or 80
    try:
        connected = box.connected("servers", host, port, 1.0) if box else socket.create_connection((host, port), timeout=1)
        with closing(HTTPConnection(host, port, timeout=1)) as connection:
            connection.sock = connected
            if not health:
                return True
            connection.request("GET", f"{parts.path.rstrip('/')}/{health.lstrip('/')}")
            return connection.getresponse().status < UNHEALTHY
    except (OSError, HTTPException):
        return False
