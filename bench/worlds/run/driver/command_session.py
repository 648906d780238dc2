"""The session of a command in one trial: its folder, its endpoints, and the state of its processes.

The session outlives the agent's process, which is started in it again the same way.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from bench.common.errors import ConfigError, GaveUp, Unmeasured, one_line
from bench.record.process_events import ProcessEnded, ProcessStarted
from bench.record.world_events import ProcessDied
from bench.run.endpoint.server import application, hang_up, routes, serve_application
from bench.run.trial.clock import in_seconds
from bench.run.trial.endpoint_session import PARALLEL
from bench.run.trial.workbench import Workbench
from bench.scenario import Task
from bench.wire.access_guard import AccessGuard
from bench.wire.agent_process import AgentProcess, ProcessExit, freeze_process, kill_process
from bench.wire.problem import Problem
from bench.wire.program import start_hint
from bench.worlds.run.driver.command import Command
from bench.worlds.run.driver.folder import MAX_BYTES, Folder, temporary
from bench.worlds.run.driver.task_text import task_text
from bench.worlds.run.driver.tool_server import ToolServer
from bench.worlds.run.driver.tools import Tools
from bench.worlds.run.runtime.acting import Acting
from bench.worlds.run.runtime.agent_session import AgentSession
from bench.worlds.run.runtime.process import AgentBody, Crashed

MAX_CONNECTIONS = 64
FOLDER_CHECK_INTERVAL_S = 1.0
"""Seconds between two checks of the folder's size."""
MODEL = "assistant"
"""The model's name as the agent sees it. The experiment decides which model answers."""
AGENT_NAME = ("the agent",)
NOT_FOUND = 404
MAX_DETAIL_LENGTH = 300
"""The most characters of a refusal in a trial's reason."""
MODEL_PATH = re.compile("(/[^/]*)?/v1/")
_current_asker = ContextVar("asker", default=0)
"""The id of the process that makes the present request, if this process can die without the agent's others; otherwise 0."""
MAX_TASK_BYTES = 2**17 - 100
"""The most bytes of a task. Linux allows 128 KiB for one environment variable, including its name."""


@asynccontextmanager
async def open_session(command: Command, task: Task, workbench: Workbench) -> AsyncIterator[CommandSession]:
    """Open the session of a trial and close it at the trial's end. Then raise any error of its endpoints."""
    with temporary() as outer:
        session = CommandSession(command, task, workbench, outer)
        async with workbench.world.outside_agent(session.serve):
            yield session
        session.check()


class CommandSession(AgentBody):
    """The session of a command in one trial. `outer` is a temporary folder that holds the agent's folder."""

    def __init__(self, command: Command, task: Task, workbench: Workbench, outer: Path):
        environment = workbench.world.environment
        self._command, self._task, self._outer = command, task_text(task, environment.work), outer
        if len(self._task.encode()) > MAX_TASK_BYTES:
            problem = f"the task is longer than an environment variable can be, {MAX_TASK_BYTES:,} bytes"
            raise ConfigError(f"{problem}; a command cannot be given it")
        self._acting: Acting = workbench.world.acting
        self._tools = Tools(workbench.world)
        self._folder = Folder(outer / "home")
        self._token = secrets.token_urlsafe(24)
        self._guard = AccessGuard(self._token, limit=MAX_CONNECTIONS)
        self._address = ""
        self._process: AgentProcess | None = None
        self._session: AgentSession | None = None
        self._failure: Exception | None = None
        self._seconds_left = command.bounds.seconds
        self._model_calls = 0
        self._last_refusal: Problem | None = None
        self._part_crash = self._parts_killed = 0
        self._request_lock = asyncio.Lock()
        self._acting.process.body = self

    @asynccontextmanager
    async def serve(self, session: AgentSession) -> AsyncIterator[str]:
        """Serve the model's endpoint and the world's tools at one address."""
        session.api_key = self._token
        self._session = session
        world = ToolServer(self._tools, self._acting)

        def refuse(problem: Problem) -> None:
            """Note a request that was refused."""
            session.log_refusal(problem.status, problem.message)
            self._last_refusal = problem

        app = application([*routes(lambda: session, MODEL), *world.routes()], self._guard, refuse, self._handle)
        async with serve_application(app, self._guard, 0) as self._address:
            self._write_relay()
            yield self._address

    async def run_process(self) -> None:
        """Run one process of the agent from its start to its end.

        Raises Crashed if it was killed as planned, GaveUp if it ended any other way than well, and any error of its endpoints.
        Raises Unmeasured instead if the command never started, if it ended after a request that was refused here, or if it
        asked nothing at all.
        """
        process, log, taken = self._acting.process, self._acting.log, self._tools.taken
        number = self._acting.world.life
        try:
            agent_process = self._process = AgentProcess(self._command.words, self._folder.path, self._environment(), MAX_BYTES)
        except OSError as error:
            if str(error.filename) == str(self._folder.path):  # the folder is gone or unreadable: the agent's doing
                raise GaveUp(AGENT_NAME, f"cannot be started in its folder: {error.strerror}") from error
            raise Unmeasured(f"the command cannot be started: {error.strerror}; see to this machine") from error
        log.emit(ProcessStarted(number, in_seconds(self._acting.clock.now())))
        limit = asyncio.get_running_loop().call_later(max(0.0, self._seconds_left), self._end_at_limit)
        self._check_folder()
        ended: ProcessExit | None = None
        try:
            ended = await asyncio.shield(agent_process.ended)
        finally:
            limit.cancel()
            self._next_check.cancel()
            await agent_process.close()
            self._seconds_left -= agent_process.seconds
            last_line = self._folder.added_to_log()
            end = ended or ProcessExit()
            log.emit(
                ProcessEnded(
                    life=number,
                    code=end.code,
                    signal=end.signal,
                    seconds=agent_process.seconds,
                    why=self._why(ended),
                    requests=self._tools.taken - taken,
                    output=log.keep_text(agent_process.output.text),
                    written=agent_process.output.written,
                    own_log=log.keep_text(last_line) if last_line is not None else None,
                    parts_killed=self._parts_killed,
                )
            )
        self._parts_killed = 0
        if self._session:
            self._session.log_set_aside()
        process.step()
        self._acting.note_exit()
        if ended.failed is not None:
            raise Unmeasured(f"{Path(self._command.words[0]).name} {_start_failure(ended.failed)}; {start_hint(ended.failed)}")
        self.check()
        if ended.code != 0:
            raise self._gave_up(f"{_end_in_words(ended)}: {agent_process.output.last_line or 'it wrote nothing'}")
        if why := self._why_unmeasured(ended_well=True):
            raise Unmeasured(f"the agent: ended with code 0; {why}")

    def check(self) -> None:
        """Raise the error of an endpoint if there was one. Raises RuntimeError if the calls that reached the world are not each
        in the log once."""
        if self._failure:
            raise self._failure
        early_deaths = sum(isinstance(event, ProcessDied) and event.point == "before" for event in self._acting.log.events)
        if self._tools.taken != self._acting.calls + early_deaths:
            raise RuntimeError(f"the world's door took {self._tools.taken} calls, and {self._acting.calls} are booked")

    def _gave_up(self, how: str) -> Exception:
        """Return the exception that ends the trial of an agent that ended in the way `how`."""
        why = self._why_unmeasured()
        return Unmeasured(f"the agent: {how}; {why}") if why else GaveUp(AGENT_NAME, how)

    def _why_unmeasured(self, ended_well: bool = False) -> str:
        """Return why an agent that has ended cannot be judged; "" if it can. An agent may end well after a request to an
        address that is not served."""
        refused, asked = self._last_refusal, self._model_calls or self._tools.asked
        if refused and not (ended_well and asked and refused.status == NOT_FOUND):
            return f"its last request was refused: {refused.status}: {one_line(refused.message, MAX_DETAIL_LENGTH)}"
        if asked:
            return ""
        turned_away = f"; a request was turned away: {self._guard.reason}" if self._guard.refusals else ""
        return f"it asked neither its model nor a tool{turned_away}"

    @web.middleware
    async def _handle(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Handle a request to the model or to a tool, as a middleware. If the process dies in it, the connection is closed
        without an answer."""
        _current_asker.set(self._asker_of(request))
        try:
            self._acting.note_request()
            self._count(request)
            if not self._in_turn(request):
                return await self._handle_accepted(request, handler)
            async with self._request_lock:
                self._acting.process.step()
                return await self._handle_accepted(request, handler)
        except Crashed:
            self._drop_state_of_dead_process()
            return hang_up(request, web.Response())
        except (Problem, web.HTTPException):
            raise
        except Exception as error:
            self._stop(error)
            raise

    def _drop_state_of_dead_process(self) -> None:
        """Drop the state of the agent's process that died, if other processes of the agent continue."""
        crash = self._acting.last_crash
        if self._session and not self._acting.process.is_dead and crash != self._part_crash:
            self._part_crash = crash
            self._session.drop_process_state(crash)

    async def _handle_accepted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Handle a request. If it succeeds, no earlier refusal ends the trial."""
        response = await handler(request)
        if request.method == "POST":
            self._last_refusal = None
        return response

    def _count(self, request: web.Request) -> None:
        """Count a call of the model. Raises GaveUp or Unmeasured at the first call beyond the limit."""
        most = self._command.bounds.model_calls
        self._model_calls += _is_model_call(request)
        if most is not None and self._model_calls > most:
            raise self._gave_up(
                f"no end after {most} calls of the model; give it more with model_calls, or see what it repeats"
            )

    def _in_turn(self, request: web.Request) -> bool:
        """Return whether this request has to wait for the request before it. Virtual time could not tell when overlapping model
        calls began unless the client marks them as parallel."""
        return _is_model_call(request) and self._acting.clock.is_virtual and PARALLEL not in request.headers

    @property
    def asker(self) -> int:
        return _current_asker.get()

    def freeze(self) -> None:
        """Stop the process that is to die: the process that sends the present request if it can die alone, else all
        processes."""
        if self.asker:
            freeze_process(self.asker)
        elif self._process:
            self._process.freeze()

    def kill(self) -> None:
        """Kill the process that is to die: the process that sends the present request if it can die alone, else all
        processes."""
        if self.asker:
            kill_process(self.asker)
            self._parts_killed += 1
        else:
            self._kill_all()

    def _kill_all(self) -> None:
        """Kill all processes of the agent, if it was started."""
        if self._process:
            self._process.kill()

    def _asker_of(self, request: web.Request) -> int:
        """Return the id of the process that sends a request, if processes of this agent are killed one by one; else 0."""
        if not (self._command.kills_caller and self._process and request.transport):
            return 0
        client_port, server_port = (request.transport.get_extra_info(name)[1] for name in ("peername", "sockname"))
        return self._process.client_process(client_port, server_port)

    def _stop(self, error: Exception) -> None:
        """End the trial with this error, unless an earlier error has ended it."""
        self._failure = self._failure or error
        self._kill_all()

    def _end_at_limit(self) -> None:
        """End the trial because its time limit is reached."""
        problem = self._process.output.last_line if self._process else ""
        limit = (
            f"no end within {self._command.bounds.seconds:g} s; give it more with time_limit_seconds, or see what it waits for"
        )
        self._stop(self._gave_up(f"{limit}{': ' + problem if problem else ''}"))

    def _check_folder(self) -> None:
        """End the trial if the agent's folder is too large, and schedule the next check."""
        if why := self._folder.too_large():
            self._stop(GaveUp(AGENT_NAME, why))
        self._next_check = asyncio.get_running_loop().call_later(FOLDER_CHECK_INTERVAL_S, self._check_folder)

    def _why(self, ended: ProcessExit | None) -> str:
        """Return why the process ended; "" if it ended by itself."""
        if self._acting.process.is_dead:
            return "crash"
        if self._failure:
            return str(self._failure)
        if ended is None:
            return "cancelled"
        if ended.failed is not None:
            return _start_failure(ended.failed)
        return "broken: the process that watched over it was killed" if ended == ProcessExit() else ""

    def _environment(self) -> Mapping[str, str]:
        """Return all environment variables of the process. From the user's environment it gets only the PATH and the
        language."""
        return {
            "LANG": os.environ.get("LANG", "C.UTF-8"),
            **self._command.env,
            "PATH": self._command.path,
            "HOME": str(self._folder.path),
            "OPENAI_BASE_URL": f"{self._address}/v1",
            "OPENAI_API_KEY": self._token,
            "OPENAI_MODEL": MODEL,
            "AGENT_TASK": self._task,
            "AGENT_FOLDER": str(self._folder.path),
            "TOOLS_URL": self._address,
            "MCP_URL": f"{self._address}/mcp",
            "MCP_COMMAND": shlex.join([sys.executable, "-I", str(self._relay)]),
        }

    @property
    def _relay(self) -> Path:
        """The program that serves the tools over stdio."""
        return self._outer / "tools.py"

    def _write_relay(self) -> None:
        """Write the program that serves the tools over stdio beside the agent's folder."""
        shutil.copyfile(Path(__file__).with_name("mcp_server.py"), self._relay)
        message = json.dumps({"address": self._address, "token": self._token})
        self._relay.with_suffix(".json").write_text(message, encoding="utf-8")


def _is_model_call(request: web.Request) -> bool:
    """Return whether a request is a call of the model."""
    return request.method == "POST" and bool(MODEL_PATH.match(request.path))


def _start_failure(number: int) -> str:
    return f"cannot be started: {os.strerror(number)}"


def _end_in_words(ended: ProcessExit) -> str:
    """Return how a process ended, in words."""
    if ended.code is not None:
        return f"ended with code {ended.code}"
    return f"ended by signal {ended.signal}" if ended.signal else "ended together with the process that watched over it"
