"""Records a pytest session: for each test, module, shared fixture and collection, what it ran and read."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite
from _pytest.assertion.rewrite import AssertionRewritingHook

from bench_code.pytest_session import IGNORABLE, ImpactSession
from bench_code.record import DIFFERS, Execution, ExecutionContext, Record
from bench_code.recorder import Recorder, uncollected
from bench_code.watching import unwatched

CONFIGURATIONS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""The files in which pytest looks for its options, in its order."""
RUN_BY_PYTEST = ("_pytest.python", "_pytest.unittest")
"""Modules of pytest whose fixtures call functions of the tree, such as `setup_module` and `setUpClass`."""
PER_TEST = ("pytest_runtest", "pytest_fixture", "pytest_pyfunc", "pytest_exception", "pytest_report", "pytest_assert")
"""The beginnings of the hooks by which a conftest takes part in each test. What pytest itself runs there is not recorded."""


class RecordingPlugin:
    """The plug-in of a session that records what its tests run and read.

    Args:
        config: pytest's configuration.
        session: The session.
    """

    def __init__(self, config: pytest.Config, session: ImpactSession):
        self.session, self.state, self.decision, self.rootpath = session, session.state, session.decision, session.rootpath
        self.recorder = Recorder(self.state.root, [IGNORABLE[each] for each in session.ignored])
        self._names: dict[Path, str] = {}
        for name in CONFIGURATIONS:  # pytest would read an earlier one, if it existed, instead of the present one
            self._depend_on(self.recorder.session, config.rootpath / name)
            if config.inipath == config.rootpath / name:
                break
        if config.inipath is not None:
            self._depend_on(self.recorder.session, config.inipath)
        names: Counter[str] = Counter(name.partition("::")[0] for name in self.decision.invalid)
        known = {name.partition("::")[0] for name in self.decision.kept}
        inert = {name for name in known if not names[name] and self.state.is_inert(config.rootpath / name)}
        whole = session.mode == "select" and not session.chooses  # else only a collection tells which tests are chosen
        self._whole = {config.rootpath / name for name in inert} if whole else set()
        self._tests: dict[str, tuple[ExecutionContext, float]] = {}
        self._collections: dict[Path, ExecutionContext] = {}
        self._fixtures: dict[int, ExecutionContext] = {}
        self._selected: list[pytest.Item] = []
        self._hooked = True
        self._ended = False
        self._stack = ExitStack()
        self._stack.enter_context(self._fixture_contexts())
        self._stack.enter_context(self.recorder.recording(AssertionRewritingHook))
        self._stack.callback(setattr, rewrite, "_rewrite_test", rewrite._rewrite_test)
        rewrite._rewrite_test = self.recorder.uncounted(rewrite._rewrite_test)

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

    @pytest.hookimpl(trylast=True)
    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if collection_path in self._whole:
            prefix = f"{collection_path.relative_to(self.rootpath)}::"
            names = [name for name in self.decision.kept if name.startswith(prefix)]
            self.session.kept += filter(self.session.is_requested, names)  # pytest asks about a file's neighbours as well
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
        if self.session.mode == "reversed":
            items.reverse()
        apart = [item for item in items if item.nodeid in self.session.differing]
        if apart:
            self.session.apart += [item.nodeid for item in apart]
            config.hook.pytest_deselected(items=apart)
            items[:] = [item for item in items if item.nodeid not in self.session.differing]
        if self.session.mode == "select":
            kept = [item for item in items if item.nodeid in self.decision.kept]
            if kept:
                self.session.kept += [item.nodeid for item in kept]
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
        context = ExecutionContext("test", item.nodeid, silent=item.nodeid in self.decision.steady)
        if context.silent:
            context.volatile[self.decision.steady[item.nodeid].volatile] = ""
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
    def pytest_sessionfinish(self) -> None:
        if self._ended:
            return
        self._stack.close()
        try:
            self.session.compare()
        finally:
            self._keep()

    def _keep(self) -> None:
        self._ended = True
        self._stack.close()
        with uncollected():
            executions = self._executions()
            self.state.save(self.session.step, self.session.layout, executions, reversed_=self.session.mode == "reversed")

    def _executions(self) -> list[Execution]:
        missing = {item.nodeid for item in self._selected} - set(self._tests)
        partly = {name.partition("::")[0] for name in missing}  # of a file that was interrupted nothing is stored
        known = self.session.outcomes
        executions = [known[name].execution(name, DIFFERS) for name in self.session.differing & known.keys()]
        for name, (context, seconds) in self._tests.items():
            if name.partition("::")[0] not in partly and name in known and name not in self.session.differing:
                records, volatile = self._last_recorded(name) if context.silent else self.recorder.records.of(context)
                executions.append(replace(known[name], seconds=seconds).execution(name, volatile, records))
        return executions

    def _last_recorded(self, name: str) -> tuple[list[Record], str]:
        """Return the records that a test depended on when it was last recorded, and why its result is not kept."""
        last = self.decision.steady[name]
        return [self._stored(id_) for id_ in self.state.store.record_ids(last.id)], last.volatile

    @cached_property
    def _stored(self) -> Callable[[int], Record]:
        return cache(self.state.store.record)
