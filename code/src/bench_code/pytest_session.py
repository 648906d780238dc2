"""A pytest session that runs the tests which a change may have changed, and notes what each of them runs.

Only bodies select: where nothing but bodies of functions has changed, the tests run that ran one of them; else all tests run.
"""

from __future__ import annotations

import builtins
import json
import marshal
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import cache, partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from bench.common.escaping import escape_line
from bench.common.files import opened
from bench_code.contents import attributes_of
from bench_code.git import is_text
from bench_code.memory import HeldObjects
from bench_code.probes import probed
from bench_code.pytest_outcomes import Outcomes
from bench_code.record import Execution, Fact, Record
from bench_code.state import ExecutionState
from bench_code.store import Kept, Leftover
from bench_code.units import digest
from bench_code.validity import in_order
from bench_code.watching import count_of_processes, watching

OF_DISPLAY = re.compile(
    "bench_.*|file_or_dir|keyword|markexpr|deselect|ignore.*|maxfail|verbose|quiet|tbstyle|color|code_highlight|durations.*"
    "|(show)?capture|showlocals|reportchars|no_(header|summary)|fulltrace|xfail_tb|force_short_summary|lf|failedfirst|newfirst"
    "|xmlpath|numprocesses|plugins|override_ini"
)
"""The names of options that change what is shown, or which tests run, and no result; of the last two some values count."""
HARMLESS = re.compile(r"\W*(\S*/)?(git|hg|uname|ldconfig|gcc|cc|ld|objdump|lsb_release)\b")
"""Programs that run no code of the tree. Modules start them to learn of their system or their version."""
UNTOLD = 100
"""After so many tests that left what nobody can tell, if they are half of the tests so far, all others count as if they did."""


class RanInTest:
    """What ran and was read in a test, in shared fixtures of a file or folder, or outside of both."""

    def __init__(self) -> None:
        self.hits, self.paths, self.always = dict[str, int](), set[str](), ""


class SharedBlock:
    """Notes for all tests what runs in a block, and the names of what the block fills of its own accord."""

    def __init__(self, session: ImpactSession, name: str, filled: Sequence[str]):
        self._session, self._name, self._filled = session, name, filled

    def __enter__(self) -> None:
        self._session.filled.update(self._filled)
        self._session.enter_shared(1)
        self._session.shared.hits[self._name] = 1

    def __exit__(self, *_: object) -> None:
        self._session.enter_shared(-1)


class ImpactSession(Outcomes):
    """A session with the option `--bench-impact` or `--bench-all`, and a plug-in of pytest.

    Args:
        config: pytest's configuration.
        everything: Whether all tests run.

    Attributes:
        shared: What ran outside of tests.
        filled: The names of what functions have filled of their own accord since the last test.
    """

    def __init__(self, config: pytest.Config, everything: bool):
        super().__init__()
        self._everything, self._rootpath = everything, config.rootpath
        try:
            self.state = ExecutionState.open(config.rootpath)
            self.step = self.state.step("run")
            self.present = self.state.present(self.step, os.environ)
            self._least = float(config.getini("bench_impact_from"))
        except Exception as error:
            raise pytest.UsageError(str(error)) from None
        self._layout, self._is_part = "", False
        self._root, self._process = str(self.state.root), os.getpid()
        self._folder = self.state.store.path.parent / "code"
        self._plain = {*(self._loaded("plain", set) or ())}
        self._looked, self._probed = set[str](), set[str]()
        self.shared, self.filled, self._depth = RanInTest(), set[str](), 0
        self._now = self._context = self.shared
        self._tests: dict[str, RanInTest] = {}
        self._fixtures: dict[str, RanInTest] = {}
        self._item, self._writers, self._written, self._made = "", dict[str, str](), dict[str, object](), set[str]()
        self._leftovers, self._count_untold = dict[str, Leftover](), 0
        self._differing, self._different, self._latest = dict[str, set[str]](), set[str](), dict[str, str]()
        self._items: list[pytest.Item] = []
        self._running: list[pytest.Item] = []
        self._untold = Leftover("", f"?{self.step}")
        self._due, self._surroundings = set[str](), set[Fact]()
        self._why, self._watches = "", True
        self._memory = HeldObjects(self._file_in, lambda file: file not in self._probed and not file.endswith("conftest.py"))
        self._stack = ExitStack()
        self._begin()

    # Probes

    def _begin(self) -> None:
        before = SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, fullname: str) -> Any:
            path = self._inside(loader.get_filename(fullname)) if type(loader) is SourceFileLoader else ""
            code = self._code(loader, path) if self.present.is_held(path) and path not in self._plain else None
            return code or before(loader, fullname)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]
        self._stack.callback(delattr, SourceFileLoader, "get_code")
        self._stack.enter_context(watching(self))
        builtins.__bench_shared__ = partial(SharedBlock, self)  # type: ignore[attr-defined]
        self._enter(self.shared)

    def _enter(self, context: RanInTest) -> None:
        self._context = context
        self.enter_shared(0)

    def enter_shared(self, by: int) -> None:
        """Note so many more blocks whose runs count for all tests. What runs outside of them counts for the present test."""
        self._depth += by
        self._now = self.shared if self._depth else self._context
        builtins.__bench__ = self._now.hits  # type: ignore[attr-defined]

    def _code(self, loader: SourceFileLoader, path: str) -> CodeType | None:
        """Return a module's code with probes, which is kept by its content; None if it has none."""
        file = os.path.join(self._root, path)
        source = loader.get_data(file)
        name = digest(f"3 {sys.version} {file}\0".encode() + source)
        code: CodeType | None = self._loaded(name, CodeType)
        if code is None:
            try:
                code = probed(source, file, path)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return None
            self._store(name, code)
        self._probed.add(path)
        return code

    def _loaded(self, name: str, kind: type) -> Any:
        with suppress(OSError, ValueError, EOFError, TypeError), opened(self._folder / name) as file:
            value = marshal.loads(file.read())
            return value if isinstance(value, kind) else None
        return None

    def _store(self, name: str, value: Any) -> None:
        with suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            beside = self._folder / f"{name}.{os.getpid()}"
            beside.write_bytes(marshal.dumps(value))
            beside.replace(self._folder / name)

    def _inside(self, path: str) -> str:
        """Return a path relative to the top of the tree; "" if it lies outside."""
        real = os.path.realpath(path)
        return real[len(self._root) + 1 :] if real.startswith(f"{self._root}{os.sep}") else ""

    def _file_in(self, attributes: dict[str, object]) -> str:
        file = attributes.get("__file__")
        path = self._inside(file) if isinstance(file, str) else ""
        return path if self.present.is_held(path) else ""

    # What is seen of code that runs

    def used(self, path: str, is_read: bool, is_written: bool) -> None:
        """Note that a file was read or changed. All that a step holds and that is no code counts for all tests anyway.

        A test leaves a change of a file for others if another reads the file, or if the change lies in the tree and remains.
        Nothing depends on a file that the session makes.
        """
        writer, inside = self._writers.get(path), self._inside(path)
        self._made |= {path} if is_written and not os.path.lexists(path) else set()
        if is_read and not (writer and writer == self._item):
            if writer:
                self._leave(writer, self._untold)
            is_made = path in self._made
            if not (is_made or is_text(path)):
                self._now.always = "reads a path whose name is not UTF-8"
            elif not is_made and (not self.present.is_held(inside) or inside.endswith(".py")):
                self._now.paths.add(inside or path)
        if is_written and self._item:
            self._writers[path] = self._item
            if inside and not inside.startswith((".git", ".pytest_cache", ".hypothesis")):
                self._written.setdefault(path, _stamp(path))

    def looked_at(self, function: Any) -> None:
        """Note that the code of a function was looked at, which depends on its file. From now on the file gets no probes."""
        if inside := self._inside(str(getattr(function, "__globals__", {}).get("__file__", ""))):
            self._now.paths.add(inside)
            self._looked.add(inside)

    def started(self, event: str, words: str) -> None:
        """Note that a process was started. It may run any code of the tree."""
        if self._now is not self.shared or not HARMLESS.match(words):
            self._now.always = self._now.always or f"starts a process ({event})"

    # Collection

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        self._layout, options = _layout(config, self._root), config.option
        self._is_part = bool(options.file_or_dir or options.keyword or options.markexpr or options.deselect)
        decision = self.state.decide(self._layout, present=self.present)
        known = {each.name: each for each in self.state.store.executions(self._layout)}
        seconds = sum(each.seconds for each in known.values())
        self._surroundings = self.present.surroundings()
        names, every = [item.nodeid for item in items], self._everything
        self._items, self._running = [*items], items
        if known and seconds < self._least and not every:
            self._why, every = f"; all tests run at once, as they take {seconds:.1f} s", True
        self._leftovers = self.state.store.leftovers()
        self._forget(names, options)
        self._due = {name for name in names if every or name not in decision.valid or self._sees_other(name)}
        untold = [name for name in names if name in self._leftovers and self._leftovers[name].is_untold]
        self._watches = every or 2 * len(untold) < len(names)
        run = in_order(self._due, names, self._leftovers) if self._watches else {*(names if self._due else ())}
        if run and not self._watches:
            self._why = "; all run, and what they leave is not looked at, since most tests leave what nobody can tell"
        elif len(run) == len(items) and not every:
            self._why = _why_all([known[name].id for name in names if name in known], self.state, self.present)
        self.kept = {name: decision.valid[name].outcome for name in names if name not in run}
        if self.kept:
            config.hook.pytest_deselected(items=[item for item in items if item.nodeid in self.kept])
            items[:] = [item for item in items if item.nodeid in run]
        if items and self._watches:
            self._memory.begin()

    # Tests and fixtures

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
        self._item, context, before = item.nodeid, RanInTest(), count_of_processes()
        self.filled.clear()
        self._enter(context)
        try:
            result = yield
            self._tests[item.nodeid] = context
            return result
        finally:
            self._enter(self.shared)
            context.always = context.always or ("starts a process" if count_of_processes() != before else "")
            self._look(item, nextitem is None or nextitem.path != item.path)
            self._item = ""

    def _look(self, item: pytest.Item, is_last: bool) -> None:
        """Note what a test left for others."""
        _forget_lines(self._root)
        if not self._watches:
            self._written.clear()
            if self.kept:
                self._leave(item.nodeid, self._untold)
            self._leftovers[item.nodeid] = self._untold
            return
        here = self._inside(str(item.path))
        left = self._memory.take_changes(self.filled, here)
        left |= {"": ""} if any(_stamp(path) != stamp for path, stamp in self._written.items()) else {}
        self._written.clear()
        self._count_untold += not all(left.values())
        self._watches = 2 * self._count_untold < max(len(self._tests), 2 * UNTOLD)
        name, file = item.nodeid, _file_of(item.nodeid)
        scope = "" if left.keys() - {here} else file
        value = digest(repr((sorted(left.items()), self._latest.get(""), self._latest.get(file))))
        self._leave(name, Leftover(scope, value if all(left.values()) else self._untold.value) if left else None)
        self._latest |= {scope: name} if left else {}
        if is_last and self._memory.is_left_elsewhere():
            for each in [each for each in self._tests if _file_of(each) == file]:
                self._leave(each, self._untold)

    def _leave(self, name: str, now: Leftover | None) -> None:
        """Note what a test leaves for others. If an edit makes that something else than before, the tests after it run as well.

        If none does, chance makes it differ, and it cannot be told.
        """
        before = self._leftovers.pop(name, None)
        is_of_edit = name in self._due or self._sees_other(name)
        if now != before and not is_of_edit:
            now = before if before and before.is_untold else self._untold
        self._leftovers |= {name: now} if now else {}
        if now != before and is_of_edit:
            self._differ(name, {each.file for each in (before, now) if each})

    def _differ(self, name: str, files: set[str]) -> None:
        """Let the tests that may see what a test leaves run from now on."""
        self._differing[name] = files
        self._different |= files
        if self.kept and self._item:
            names = [item.nodeid for item in self._items]
            after = self._items[names.index(self._item) + 1 :]
            at = next(number for number, item in enumerate(self._running) if item.nodeid == self._item)
            self._running[at + 1 :] = [e for e in after if e.nodeid not in self.kept or self._sees_other(e.nodeid)]
            run = {item.nodeid for item in self._running}
            self.kept = {each: outcome for each, outcome in self.kept.items() if each not in run}

    def _sees_other(self, name: str) -> bool:
        """Return whether a test may see that an earlier test leaves something else than before."""
        return bool(self._different & {"", _file_of(name)})

    def _forget(self, names: Collection[str], options: Any) -> None:
        """Forget what tests left that are gone. The tests that saw it run."""
        files = {*map(_file_of, names)}
        if options.keyword or options.markexpr or options.deselect or any("::" in each for each in options.file_or_dir):
            return
        for name in self._leftovers.keys() - names:
            if not self._is_part or _file_of(name) in files or not (self._rootpath / _file_of(name)).exists():
                self._differ(name, {self._leftovers.pop(name).file})

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        if fixturedef.scope == "function" or (fixturedef.func.__module__.startswith("_pytest.") and not fixturedef.baseid):
            return (yield)
        before, base = self._context, fixturedef.baseid
        self._enter(self._fixtures.setdefault(base, RanInTest()) if base else self.shared)
        try:
            value = yield
        finally:
            self._enter(before)
        file = base.partition("::")[0]
        if self._watches:
            self._memory.watch(value, file if file.endswith(".py") else "", fixturedef.argname)
        return value

    # The end

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Store the ended tests before pytest writes the traceback: an interrupted session may have no time left afterwards."""
        self._reason = str(excinfo.value) or "interrupted"
        self._keep()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.kept:
            session.exitstatus = pytest.ExitCode.OK
        self._exit_code = int(session.exitstatus)
        self._keep()

    def close(self) -> None:
        """Take the probes out of what is imported from now on."""
        self._stack.close()

    def _keep(self) -> None:
        """Store what the tests depend on, once. A process that a test forked stores nothing."""
        self.close()
        if os.getpid() != self._process or not self._tests:
            return
        tests, self._tests = self._tests, {}
        body = cache(partial(self.present.fact, "body"))
        rest = Record("rest", "", frozenset(self._rest()))
        for_all = Record("shared", "", self._facts(self.shared, body))
        fixtures = {base: (Record("fixtures", base, self._facts(f, body)), f.always) for base, f in self._fixtures.items()}
        executions = []
        for name, context in tests.items():
            if out := self.outcomes.get(name):
                code = self.present.fact("code", self._inside(str(self._rootpath / name.partition("::")[0])))
                wider = [each for base, each in fixtures.items() if name.startswith(base)]
                records = [
                    rest,
                    for_all,
                    Record("test", name, self._facts(context, body) | {code}),
                    *(each for each, _ in wider),
                ]
                why = next(filter(None, (context.always, self.shared.always, *(always for _, always in wider))), "")
                records += [Record("always", why, frozenset({self.present.fact("tree")}))] if why else []
                reason = f"runs on every change: it {why}" if why else ""
                executions.append(Execution("test", name, out.outcome, out.detail, out.seconds, tuple(records), reason))
        files, earlier = {"", *map(_file_of, tests)}, self.state.store.executions()
        missing = {name for name, each in self._leftovers.items() if each.file in files and name not in tests}
        self.state.store.save(self.step, f"{self._layout} in part" if self._is_part and missing else self._layout, executions)
        self._retire(earlier)
        self.state.store.save_leftovers(self._leftovers)
        self._store("plain", self._plain | (self._looked & self._probed))

    def _retire(self, earlier: Sequence[Kept]) -> None:
        """Let no earlier result count of tests that may see what some tests now leave."""
        names, retired = [item.nodeid for item in self._items], dict[int, str]()
        for name, files in self._differing.items():
            before = {*names[: names.index(name)]} if name in names else set()
            seers = (each for each in earlier if each.kind == "test" and each.name not in before)
            ids = (each.id for each in seers if files & {"", _file_of(each.name)})
            retired = dict.fromkeys(ids, name) | retired
        self.state.store.retire(retired)

    def _facts(self, context: RanInTest, body: Callable[[str], Fact]) -> frozenset[Fact]:
        ran = (body(name) for name in context.hits if "::" in name)
        return frozenset((*ran, *(self.present.fact("file", path) for path in context.paths)))

    def _rest(self) -> Iterable[Fact]:
        """Yield the facts that hold of all that is no body of a function whose runs are seen."""
        tests = {self._inside(str(item.path)) for item in self._items}
        files = ((attributes_of(module) or {}).get("__file__") for module in sys.modules.copy().values())
        outside = (sys.prefix + os.sep, sys.base_prefix + os.sep)
        loaded = {self._inside(f) or os.path.abspath(f) for f in files if isinstance(f, str) and not f.startswith(outside)}
        modules = {path: self.present.module(path) for path in self.present.files}
        stems = Counter(Path(path).stem for path in modules)
        words = ((word, Path(path).stem) for path, module in modules.items() if module for word in module.mentions)
        mentioned = {word for word, stem in words if word != stem or stems[stem] > 1}
        for path, module in modules.items():
            stem = Path(path).stem
            if module is None:
                yield self.present.fact("file", path)
            elif path not in loaded or path in self._probed:
                yield self.present.fact("skeleton", path)
            elif path in tests and stem not in mentioned and (stem.startswith("test_") or stem.endswith("_test")):
                yield self.present.fact("helpers", path)
            else:
                yield self.present.fact("code", path)
        yield from (self.present.fact("file", path) for path in loaded - self.present.files.keys())
        yield from (*self._surroundings, self.present.fact("files"))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if file := terminalreporter.config.getoption("bench_json"):
            Path(file).write_text(json.dumps({"step": self.step} | self.report()), encoding="utf-8")
        line = f"bench: step {self.step}: {len(self.outcomes)} tests run, {len(self.kept)} results kept{self._why}"
        terminalreporter.write_line(escape_line(line))


def _layout(config: pytest.Config, root: str) -> str:
    """Return a word for the options that can change a result, and the folder."""
    given = vars(config.option)
    options = {name: value for name, value in given.items() if not OF_DISPLAY.fullmatch(name)}
    options["plugins"] = [each for each in given.get("plugins") or () if each != "bench_code.plugin"]
    options["override_ini"] = [each for each in given.get("override_ini") or () if not each.startswith("bench_")]
    folder = os.path.relpath(config.invocation_params.dir.resolve(), root)
    return f"only bodies select, by what is left {digest(repr((sorted(options.items()), folder)))}"


def _why_all(last: Sequence[int], state: ExecutionState, present: Any) -> str:
    """Return why all tests run: the first fact for all of them on which their last results relied, and which has changed."""
    for id_ in last[:1]:
        changed = [
            fact for kind, _, fact in state.store.facts_of(id_) if kind in ("rest", "shared") and not present.holds(fact)
        ]
        for fact in sorted(changed, key=lambda fact: (fact.kind == "body", fact))[:1]:
            return f"; all run, since {fact.words} changed{', which is not of one test' if fact.kind == 'body' else ''}"
    return "" if last else "; all run, since none has run so before"


def _file_of(name: str) -> str:
    return name.partition("::")[0]


def _stamp(path: str) -> object:
    with suppress(OSError):
        about = os.stat(path)
        return about.st_mtime_ns, about.st_size
    return None


def _forget_lines(root: str) -> None:
    """Let the next test that reads a source's lines open the file, so that it is seen."""
    lines = getattr(sys.modules.get("linecache"), "cache", {})
    for name in [each for each in lines if each.startswith(root)]:
        del lines[name]
