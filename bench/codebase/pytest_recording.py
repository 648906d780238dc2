"""Records a pytest session: for each test, module, shared fixture and collection, what it ran and read."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite
from _pytest.assertion.rewrite import AssertionRewritingHook

from bench.codebase.present import AT_START
from bench.codebase.record import CHANCE, CLOCK, Execution, ExecutionContext
from bench.codebase.recorder import Recorder, uncollected
from bench.codebase.state import ExecutionState
from bench.codebase.validity import ValidityDecision
from bench.codebase.watching import unwatched
from bench.common.escaping import escape_line

DISPLAY = re.compile(
    r"--bench-(impact|record|json).*|usual|reversed|-[qvxsl]+|-[rkm].+"
    r"|--(quiet|verbose|exitfirst|showlocals|no-header|no-summary|full-trace|lf|last-failed|ff|failed-first|nf|new-first)"
    r"|--(tb|color|durations|durations-min|maxfail|show-capture|deselect|ignore|ignore-glob|junit-?xml|verbosity|capture)=.*"
)
"""Options that change what is shown, or which tests run, and no result."""
TAKES_A_WORD = re.compile(r"-[rkm]|--[a-z-]+")
"""Options that may have their value in the next word."""
MOST_TEXT = 4000
"""The most letters that are kept of what pytest writes of a failure; the end tells most."""
IGNORABLE = {"clock": CLOCK, "chance": CHANCE}
"""What the ini option `bench_impact_ignores` can name, with the reason that is then no reason to run a test again."""
CONFIGURATIONS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""The files in which pytest looks for its options, in its order."""
RUN_BY_PYTEST = ("_pytest.python", "_pytest.unittest")
"""Modules of pytest whose fixtures call functions of the tree, such as `setup_module` and `setUpClass`."""
WORST = ("passed", "xpassed", "xfailed", "skipped", "failed", "error")
"""Outcomes of a test's phases, the least serious first. The test has the most serious outcome of its phases."""
PER_TEST = ("pytest_runtest", "pytest_fixture", "pytest_pyfunc", "pytest_exception", "pytest_report", "pytest_assert")
"""The beginnings of the hooks by which a conftest takes part in each test. What pytest itself runs there is not recorded."""


class RecordingPlugin:
    """The plug-in of a session with the option `--bench-impact` or `--bench-record`.

    Args:
        config: pytest's configuration.
        mode: "select" runs the tests that are invalid, "usual" all tests, and "reversed" all tests in reverse order.
        arguments: The arguments of the command line.
    """

    def __init__(self, config: pytest.Config, mode: str, arguments: list[str]):
        if getattr(config.known_args_namespace, "numprocesses", None) or hasattr(config, "workerinput"):
            raise pytest.UsageError("--bench-impact records one process; give -n 0")
        self.mode, self.rootpath = mode, config.rootpath
        ignored = config.getini("bench_impact_ignores")
        if unknown := sorted({*ignored} - IGNORABLE.keys()):
            raise pytest.UsageError(f"bench_impact_ignores: '{unknown[0]}' is none of {', '.join(IGNORABLE)}")
        try:
            self.state = ExecutionState.open(config.rootpath)
            with uncollected():
                self.step = self.state.step("run")
        except Exception as error:
            raise pytest.UsageError(str(error)) from None
        self.state.drop_outdated_bytecode()
        self.layout = self._layout_of(config, arguments)
        self.recorder = Recorder(self.state.root, [IGNORABLE[each] for each in ignored])
        self._names: dict[Path, str] = {}
        for name in CONFIGURATIONS:  # pytest would read an earlier one, if it existed, instead of the present one
            self._depend_on(self.recorder.session, config.rootpath / name)
            if config.inipath == config.rootpath / name:
                break
        if config.inipath is not None:
            self._depend_on(self.recorder.session, config.inipath)
        self.decision = self.state.decide(self.layout) if mode == "select" else ValidityDecision({}, ())
        if self.decision.kept and self.state.has_new_effects(config.getini("python_files")):
            self.decision = ValidityDecision({}, (*self.decision.kept, *self.decision.invalid), self.decision.stale)
        names: Counter[str] = Counter(name.partition("::")[0] for name in self.decision.invalid)
        known = {name.partition("::")[0] for name in self.decision.kept}
        inert = {name for name in known if not names[name] and self.state.is_inert(config.rootpath / name)}
        self._whole = {config.rootpath / name for name in inert} if mode == "select" else set()
        self._tests: dict[str, tuple[ExecutionContext, float]] = {}
        self._outcomes: dict[str, tuple[str, str]] = {}
        self._messages: dict[str, str] = {}
        self._collections: dict[Path, ExecutionContext] = {}
        self._fixtures: dict[int, ExecutionContext] = {}
        self._selected: list[pytest.Item] = []
        self._hooked = True
        self._ended = False
        self._exit_code = 0
        self._kept: list[str] = []
        self._bad: list[str] = []
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as under nohup; the ended tests must be stored all the same
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self._stack = ExitStack()
        self._stack.enter_context(self._fixture_contexts())
        self._stack.enter_context(self.recorder.recording(AssertionRewritingHook))
        self._stack.callback(setattr, rewrite, "_rewrite_test", rewrite._rewrite_test)
        rewrite._rewrite_test = self.recorder.uncounted(rewrite._rewrite_test)

    def _layout_of(self, config: pytest.Config, arguments: list[str]) -> str:
        """Return the arguments and variables that can change a result: all but the requested files and display options."""
        folder = config.invocation_params.dir
        files = config.known_args_namespace.file_or_dir
        requested = {word for word in files if (folder / word.partition("::")[0]).exists()}
        left_out = {"bench.codebase.plugin", *requested}
        words, given = list[str](), iter(arguments)
        for word in given:
            if TAKES_A_WORD.fullmatch(word) and DISPLAY.fullmatch(f"{word}=") and not DISPLAY.fullmatch(word):
                next(given, "")
            elif word not in left_out and not DISPLAY.fullmatch(word):
                words.append(word)
        words += [f"in {os.path.relpath(folder, self.state.root)}"] if folder.resolve() != self.state.root else []
        words += [f"{name}={os.environ[name]}" for name in AT_START if name in os.environ]
        return " ".join(words)

    def _depend_on(self, context: ExecutionContext, path: Path) -> None:
        """Note that a context relies on a file which pytest itself reads."""
        with unwatched():
            if path not in self._names:
                real = path.resolve()
                self._names[path] = str(real.relative_to(self.state.root) if real.is_relative_to(self.state.root) else path)
            name = self._names[path]
            kind = "skeleton" if path.suffix == ".py" else "file"
            context.note(kind, name, self.recorder.present.value(kind, name))

    # Collection

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if collection_path in self._whole:
            prefix = f"{collection_path.relative_to(self.rootpath)}::"
            self._kept += [name for name in self.decision.kept if name.startswith(prefix)]
            return True
        return None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        if isinstance(collector, pytest.Session):
            return (yield)
        if collector.path not in self._collections:
            self._collections[collector.path] = ExecutionContext("collection", self._relative(collector.path))
            self.recorder.records.collections.append(self._collections[collector.path])
        context = self._collections[collector.path]
        if collector.path.is_dir():
            for name in ("conftest.py", "__init__.py"):  # also if there is none
                self._depend_on(context, collector.path / name)
        with self.recorder.context(context):
            return (yield)

    def _relative(self, path: Path) -> str:
        return str(path.relative_to(self.rootpath)) if path.is_relative_to(self.rootpath) else str(path)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if self.mode == "reversed":
            items.reverse()
        if self.mode == "select":
            kept = [item for item in items if item.nodeid in self.decision.kept]
            if kept:
                self._kept += [item.nodeid for item in kept]
                config.hook.pytest_deselected(items=kept)
                items[:] = [item for item in items if item.nodeid not in self.decision.kept]
        self._selected = list(items)
        plugins = [plugin for plugin in config.pluginmanager.get_plugins() if getattr(plugin, "__file__", None)]
        state_plugins = [plugin for plugin in plugins if Path(plugin.__file__).is_relative_to(self.state.root)]
        self._hooked = any(name.startswith(PER_TEST) for plugin in state_plugins for name in vars(plugin))

    # Tests and fixtures

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        with self.recorder.context(self.recorder.session, calls=self._hooked):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        context = ExecutionContext("test", item.nodeid)
        for node in item.listchain():
            if node.path in self._collections:
                context.uses.add(self._collections[node.path])
        self._depend_on(context, item.path)
        self.recorder.forget()
        with self.recorder.context(context, calls=self._hooked):
            began = time.perf_counter()
            result = yield
            self._tests[item.nodeid] = (context, time.perf_counter() - began)
        return result

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self) -> Generator[None, None, None]:
        with self.recorder.calls():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, pytest.TestReport]:
        report: pytest.TestReport = yield
        outcome = str(report.outcome)
        if hasattr(report, "wasxfail"):
            outcome = "xfailed" if report.skipped else "xpassed"
        elif report.failed and report.when != "call":
            outcome = "error"
        detail = call.excinfo.typename if call.excinfo is not None else ""
        before = self._outcomes.get(item.nodeid, ("passed", ""))
        if WORST.index(outcome) > WORST.index(before[0]) or item.nodeid not in self._outcomes:
            self._outcomes[item.nodeid] = (outcome, detail)
        if report.failed:
            self._messages[item.nodeid] = report.longreprtext[-MOST_TEXT:]
        return report

    @contextmanager
    def _fixture_contexts(self) -> Iterator[None]:
        """Record each fixture that several tests share apart. Each test that requests the fixture relies on that record."""
        original: Callable[..., Any] = pytest.FixtureDef.execute

        def execute(fixture: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Any:
            if fixture.func.__module__.startswith("_pytest.") and fixture.func.__module__ not in RUN_BY_PYTEST:
                return original(fixture, request)
            if fixture.scope == "function":
                with self.recorder.calls():
                    return original(fixture, request)
            before = fixture.cached_result
            context = ExecutionContext("fixture", f"{fixture.baseid}::{fixture.argname}")
            try:
                with self.recorder.context(context):
                    return original(fixture, request)
            finally:
                if before is None or fixture.cached_result is not before:
                    self._fixtures[id(fixture)] = context
                self.recorder.current.uses.update((context, self._fixtures[id(fixture)]))

        def finish(fixture: pytest.FixtureDef[Any], request: Any) -> None:
            with self.recorder.calls():
                finished(fixture, request)

        finished: Callable[..., Any] = pytest.FixtureDef.finish
        owner: Any = pytest.FixtureDef
        owner.execute, owner.finish = execute, finish
        try:
            yield
        finally:
            owner.execute, owner.finish = original, finished

    # The end

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self) -> None:
        """Store the ended tests before pytest writes the traceback: an interrupted session may have no time left afterwards."""
        self._keep()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self._ended:
            self._keep()
        self._bad = [name for name in self._kept if self.decision.kept[name].outcome in ("failed", "error")]
        if self._bad and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif self._kept and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK
        self._exit_code = int(session.exitstatus)

    def _keep(self) -> None:
        self._ended = True
        self._stack.close()
        with uncollected():
            executions = self._executions()
            self.state.save(self.step, self.layout, executions, reversed_=self.mode == "reversed")

    def _executions(self) -> list[Execution]:
        missing = {item.nodeid for item in self._selected} - set(self._tests)
        partly = {name.partition("::")[0] for name in missing}  # of a file that was interrupted nothing is stored
        executions = []
        for name, (context, seconds) in self._tests.items():
            if name.partition("::")[0] not in partly and name in self._outcomes:
                records, volatile = self.recorder.records.of(context)
                outcome, detail = self._outcomes[name]
                message = self._messages.get(name, "")
                executions.append(Execution("test", name, outcome, detail, seconds, tuple(records), volatile, message))
        return executions

    def _report(self, exit_code: int) -> dict[str, object]:
        """Return what a program wants to know of the session."""
        kept, ran = self.decision.kept, {name: outcome for name, (outcome, _) in self._outcomes.items()}
        failed: list[tuple[str, str, int | None, str]] = [
            (name, ran[name], None, text) for name, text in self._messages.items()
        ]
        failed += [(name, kept[name].outcome, kept[name].step, self.state.store.message(kept[name].id)) for name in self._bad]
        return {
            "step": self.step,
            "exit": exit_code,
            "ran": ran,
            "kept": {name: kept[name].outcome for name in self._kept},
            "failures": [dict(zip(("name", "outcome", "kept_from", "message"), each, strict=True)) for each in failed],
        }

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for name in self._bad:
            terminalreporter.write_line(escape_line(f"FAILED {name} (kept from step {self.decision.kept[name].step})"))
            for line in self.state.store.message(self.decision.kept[name].id).splitlines():
                terminalreporter.write_line(f"    {escape_line(line)}")
        if file := terminalreporter.config.getoption("bench_json"):
            Path(file).write_text(json.dumps(self._report(self._exit_code)), encoding="utf-8")
        kept = f"{len(self._kept)} results kept, {len(self._bad)} of them failures"
        terminalreporter.write_line(f"bench: step {self.step}: {len(self._tests)} tests run, {kept}")
