"""A pytest session that runs the tests which a change may have changed, and notes what each of them runs.

Only bodies select: where nothing but bodies of functions has changed, the tests run that ran one of them; else all tests run.
"""

from __future__ import annotations

import builtins
import json
import marshal
import os
import re
import signal
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, suppress
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench.common.escaping import escape_line
from bench.common.files import opened
from bench_code.git import is_text
from bench_code.memory import HeldObjects, unexplained
from bench_code.probes import IMPORT, ProbedModule, probed, read_probed
from bench_code.pytest_outcomes import MOST_TEXT, Outcomes
from bench_code.record import Execution, Fact, Record
from bench_code.state import ExecutionState
from bench_code.units import digest
from bench_code.validity import BAD, in_order
from bench_code.watching import watching

DISPLAY = re.compile(
    r"--bench-(impact|all|json).*|bench_impact_from=.*|-[qvxsl]+|-[rkm].+"
    r"|--(quiet|verbose|exitfirst|showlocals|no-header|no-summary|full-trace|lf|last-failed|ff|failed-first|nf|new-first)"
    r"|--(tb|color|durations|durations-min|maxfail|show-capture|deselect|ignore|ignore-glob|junit-?xml|verbosity|capture)=.*"
)
"""Options that change what is shown, or which tests run, and no result."""
TAKES_A_WORD = re.compile(r"-[rkm]|--[a-z-]+")
"""Options that may have their value in the next word."""
HARMLESS = re.compile(r"\W*(\S*/)?(git|hg|uname|ldconfig|gcc|cc|ld|objdump|lsb_release)\b")
"""Programs that run no code of the tree. Modules start them to learn of their system or their version."""
MORE = 100_000
"""So many functions can be new in a session."""
TOO_OFTEN = 200
"""After so many tests that left something in memory, no more are looked for: they all run on each change."""


class RanInTest:
    """What ran and was read in a test, in shared fixtures of a file or folder, or outside of both."""

    def __init__(self, size: int):
        self.hits, self.paths, self.always = bytearray(size), set[str](), ""


class SharedBlock:
    """Notes for all tests what runs in a block, and which functions fill something of their own accord."""

    def __init__(self, session: ImpactSession, names: Iterable[str]):
        self._session, self._names, self._outer = session, frozenset(names), list[bytearray]()

    def __enter__(self) -> None:
        self._outer.append(builtins.__bench__)  # type: ignore[attr-defined]
        builtins.__bench__ = self._session.shared.hits  # type: ignore[attr-defined]
        self._session.filled |= self._names

    def __exit__(self, *_: object) -> None:
        builtins.__bench__ = self._outer.pop()  # type: ignore[attr-defined]


class ImpactSession(Outcomes):
    """A session with the option `--bench-impact` or `--bench-all`, and a plug-in of pytest.

    Args:
        config: pytest's configuration.
        everything: Whether all tests run.
        arguments: The arguments of the command line.

    Attributes:
        kept: The tests that do not run, each with its kept outcome.
        shared: What ran outside of tests.
        filled: The names of what functions have filled of their own accord since the last test.
    """

    def __init__(self, config: pytest.Config, everything: bool, arguments: list[str]):
        super().__init__()
        self.rootpath, self._everything = config.rootpath, everything
        try:
            self.state = ExecutionState.open(config.rootpath)
            self.step = self.state.step("run")
            self.present = self.state.present(self.step, os.environ)
            self._least = float(config.getini("bench_impact_from"))
        except Exception as error:
            raise pytest.UsageError(str(error)) from None
        options, folder = config.known_args_namespace, config.invocation_params.dir
        requested = {word for word in options.file_or_dir if (folder / word.partition("::")[0]).exists()}
        self._is_part = bool(requested or options.keyword or options.markexpr or options.deselect)
        self.layout = self._layout_of(config, [word for word in arguments if word not in requested])
        self._root, self._process = str(self.state.root), os.getpid()
        self._folder = self.state.store.path.parent / "code"
        self._numbers: dict[str, int] = self._loaded("numbers", dict) or {"": IMPORT}
        self._plain: set[str] = self._loaded("plain", set) or set()
        self._looked = set[str]()
        self._size = max(self._numbers.values()) + MORE
        self.shared, self.filled = RanInTest(self._size), set[str]()
        self._blocks = {IMPORT: SharedBlock(self, ())}
        self._tests: dict[str, RanInTest] = {}
        self._fixtures: dict[str, RanInTest] = {}
        self._probed: set[str] = set()
        self._now, self._writers = self.shared, dict[str, str]()
        self._item, self._written = "", dict[str, object]()
        self._orders, self._often = set[str](), 0
        self._items: list[pytest.Item] = []
        self._due, self._surroundings = set[str](), set[Fact]()
        self.kept: dict[str, str] = {}
        self._reason, self._why, self._exit_code, self._changed = "", "", 0, ""
        self._uncollected: dict[str, str] = {}
        self._memory = HeldObjects(self._module_in, lambda file: not self._is_probed(file))
        self._stack = ExitStack()
        self._begin()

    def _layout_of(self, config: pytest.Config, arguments: list[str]) -> str:
        """Return the arguments that can change a result: all but the requested files and display options."""
        folder = config.invocation_params.dir
        words, given = list[str](), iter(arguments)
        for word in given:
            if TAKES_A_WORD.fullmatch(word) and DISPLAY.fullmatch(f"{word}=") and not DISPLAY.fullmatch(word):
                next(given, "")
            elif word != "bench_code.plugin" and not DISPLAY.fullmatch(word):
                words.append(word)
        words += [f"in {os.path.relpath(folder, self.state.root)}"] if folder.resolve() != self.state.root else []
        return " ".join(("only bodies select", *words))

    # Probes

    def _begin(self) -> None:
        builtins.__bench__, builtins.__bench_shared__ = self.shared.hits, self._blocks  # type: ignore[attr-defined]
        before = SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, fullname: str) -> Any:
            path = self._inside(loader.get_filename(fullname)) if type(loader) is SourceFileLoader else ""
            module = self._code(loader, path) if self.present.is_held(path) and path not in self._plain else None
            return module.code if module else before(loader, fullname)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]
        self._stack.callback(delattr, SourceFileLoader, "get_code")
        self._stack.enter_context(watching(self))

    def _code(self, loader: SourceFileLoader, path: str) -> ProbedModule | None:
        """Return a module's code with probes, which is kept by its content; None if it has none."""
        file = os.path.join(self._root, path)
        source = loader.get_data(file)
        if len(self._numbers) + len(source) // 8 > self._size:
            return None
        name = digest(f"1 {sys.version} {file}\0".encode() + source)
        module = read_probed(self._loaded(name, tuple))
        if module is None or any(self._numbers.get(f"{path}::{unit}") != k for unit, k in module.numbers.items()):
            try:
                module = probed(source, file, lambda unit: self._numbers.setdefault(f"{path}::{unit}", len(self._numbers)))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return None
            self._store(name, (module.code, module.numbers, module.fills))
        self._blocks |= {k: SharedBlock(self, module.fills.get(k, ())) for k in module.numbers.values()}
        self._probed.add(path)
        return module

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
        real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        return real[len(self._root) + 1 :] if real.startswith(f"{self._root}{os.sep}") else ""

    def _module_in(self, module: ModuleType) -> str:
        file = getattr(module, "__file__", None)
        path = self._inside(file) if isinstance(file, str) else ""
        return path if self.present.is_held(path) else ""

    def _is_probed(self, path: str) -> bool:
        return path in self._probed or path.endswith("conftest.py")

    # What is seen of code that runs

    def read(self, path: str) -> None:
        """Note that a file was read. All that a step holds and that is no code counts for all tests anyway."""
        if (writer := self._writers.get(path, self._item)) != self._item:
            self._orders.add(writer)
        inside = self._inside(path)
        if not is_text(path):
            self._now.always = "reads a path whose name is not UTF-8"
        elif not self.present.is_held(inside) or inside.endswith(".py"):
            self._now.paths.add(inside or path)

    def wrote(self, path: str) -> None:
        """Note that a file was changed. If that remains and lies in the tree, or if another test reads it, the test left it."""
        if self._item:
            self._writers[path] = self._item
            if self._inside(path) and not self._inside(path).startswith((".git", ".pytest_cache", ".hypothesis")):
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

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Let an interrupt end the session from now on, also under nohup, so that the results of the ended tests are stored."""
        if signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(signal.SIGINT, signal.default_int_handler)

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        try:
            return (yield)
        except pytest.UsageError as error:
            self._reason = "; ".join(map(str, error.args))
            raise

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._uncollected[report.nodeid] = report.longreprtext[-MOST_TEXT:]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        decision = self.state.decide(self.layout, present=self.present)
        known = self.state.store.executions(self.layout)
        seconds = sum({each.name: each.seconds for each in known}.values())
        self._surroundings = self.present.surroundings()
        names, ordered = [item.nodeid for item in items], self.state.store.ordered()
        self._items, every = [*items], self._everything
        if known and seconds < self._least and not every:
            self._why, every = f"all tests run at once, as they take {seconds:.1f} s", True
        self._due = {name for name in names if every or name not in decision.valid}
        run = in_order(self._due, names, ordered)
        if len(run) == len(items) and decision.stale and not every:
            named = sorted(decision.stale, key=lambda fact: (fact.kind == "body", fact.kind == "tree", fact))[0]
            self._changed = f"; all run, since {named.words} changed" if named.kind != "body" else ""
        self.kept = {name: decision.kept[name].outcome for name in names if name not in run}
        if self.kept:
            config.hook.pytest_deselected(items=[item for item in items if item.nodeid in self.kept])
            items[:] = [item for item in items if item.nodeid in run]
        if items:
            self._memory.begin()

    # Tests and fixtures

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._item, context = item.nodeid, RanInTest(self._size)
        before = self._count()
        self.filled.clear()
        self._enter(context)
        try:
            result = yield
            self._tests[item.nodeid] = context
            return result
        finally:
            self._enter(self.shared)
            context.always = context.always or ("starts a process" if self._count() != before else "")
            self._look(item)
            self._item = ""

    def _enter(self, context: RanInTest) -> None:
        self._now = context
        builtins.__bench__ = context.hits  # type: ignore[attr-defined]

    def _count(self) -> str:
        """Return how many processes `multiprocessing` has started, which raises no audit event."""
        return repr(getattr(sys.modules.get("multiprocessing.process"), "_process_counter", ""))

    def _look(self, item: pytest.Item) -> None:
        """Note whether a test left something for others. If it is new, the tests after it run as well."""
        _forget_lines(self._root)
        left = ["" for path, stamp in self._written.items() if _stamp(path) != stamp]
        self._written.clear()
        if self._often < TOO_OFTEN:
            left += [each.file for each in unexplained(self._memory.left(), self.filled)]
        if self._often >= TOO_OFTEN or left:
            self._often += 1
            file = item.nodeid.partition("::")[0]
            its_file = self._inside(str(item.path))
            everywhere = not left or any(each != its_file for each in left)
            self._orders.add(item.nodeid if everywhere else file)
            if self.kept and item.nodeid in self._due:
                self._go_on(item, "" if everywhere else f"{file}::")

    def _go_on(self, item: pytest.Item, prefix: str) -> None:
        """Run the tests after a test too, as far as their names begin so."""
        items = item.session.items
        after = self._items[self._items.index(item) + 1 :]
        items[items.index(item) + 1 :] = [e for e in after if e.nodeid not in self.kept or e.nodeid.startswith(prefix)]
        for each in items:
            self.kept.pop(each.nodeid, None)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        if fixturedef.scope == "function" or (fixturedef.func.__module__.startswith("_pytest.") and not fixturedef.baseid):
            return (yield)
        before, base = self._now, fixturedef.baseid
        self._enter(self._fixtures.setdefault(base, RanInTest(self._size)) if base else self.shared)
        try:
            value = yield
        finally:
            self._enter(before)
        file = base.partition("::")[0]
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
        names = {k: name for name, k in self._numbers.items()}
        bodies = cache(lambda k: self.present.fact("body", names[k]))
        always = {name: each.always for name, each in tests.items()}
        shared = [each for name, each in tests.items() if name in self._orders]
        rest = Record("rest", "", frozenset(self._rest()))
        for_all = Record("shared", "", frozenset().union(*(self._facts(each, bodies) for each in (self.shared, *shared))))
        fixtures = {base: Record("fixtures", base, self._facts(each, bodies)) for base, each in self._fixtures.items()}
        executions = []
        for name, context in tests.items():
            out = self.outcomes.get(name)
            if out is None:
                continue
            record = Record("test", name, self._facts(context, bodies) | {self.present.fact("code", self._path_of(name))})
            records = [rest, for_all, record, *(each for base, each in fixtures.items() if name.startswith(base))]
            why = always[name] or self.shared.always
            why = why or next((f.always for base, f in self._fixtures.items() if f.always and name.startswith(base)), "")
            if why:
                records.append(Record("always", why, frozenset({self.present.fact("tree")})))
            reason = f"runs on every change: it {why}" if why else ""
            executions.append(
                Execution("test", name, out.outcome, out.detail, out.seconds, tuple(records), reason, out.message)
            )
        is_whole = not self.kept and not self._is_part and len(executions) == len(self._items)
        missing = self.state.store.ordered() - {name.partition("::")[0] for name in tests} - tests.keys()
        layout = f"{self.layout} in part" if self._is_part and missing else self.layout
        self.state.save(self.step, layout, executions)
        self.state.store.save_order(self._orders, anew=is_whole)
        self._store("numbers", self._numbers)
        self._store("plain", self._plain | (self._looked & self._probed))

    def _path_of(self, name: str) -> str:
        return self._inside(str(self.rootpath / name.partition("::")[0]))

    def _facts(self, context: RanInTest, bodies: Callable[[int], Fact]) -> frozenset[Fact]:
        ran = (bodies(each.start()) for each in re.finditer(b"\1", context.hits) if each.start() != IMPORT)
        return frozenset((*ran, *(self.present.fact("file", path) for path in context.paths)))

    def _rest(self) -> Iterable[Fact]:
        """Yield the facts that hold of all that is no body of a function whose runs are seen."""
        tests = {self._inside(str(item.path)) for item in self._items}
        loaded = set[str]()
        for module in [*sys.modules.values()]:
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and not file.startswith((sys.prefix + os.sep, sys.base_prefix + os.sep)):
                loaded.add(self._inside(file) or os.path.abspath(file))
        mentioned = {
            word
            for path in self.present.files
            for word in getattr(self.present.module(path), "mentions", ())
            if word != Path(path).stem
        }
        for path in self.present.files:
            if self.present.module(path) is None:
                yield self.present.fact("file", path)
            elif path not in loaded or path in self._probed:
                yield self.present.fact("skeleton", path)
            else:
                stem = Path(path).stem
                is_alone = path in tests and stem not in mentioned and (stem.startswith("test_") or stem.endswith("_test"))
                yield self.present.fact("helpers" if is_alone else "code", path)
        yield from (self.present.fact("file", path) for path in loaded - self.present.files.keys())
        yield from self._surroundings
        yield self.present.fact("files")

    def _report(self) -> dict[str, object]:
        """Return what a program wants to know of the session."""
        nothing = "no test was chosen" if self._exit_code == pytest.ExitCode.NO_TESTS_COLLECTED else ""
        failed = [(name, "error", message) for name, message in self._uncollected.items()]
        failed += [(name, each.outcome, each.message) for name, each in self.outcomes.items() if each.outcome in BAD]
        return {
            "step": self.step,
            "exit": self._exit_code,
            "reason": self._reason or nothing,
            "ran": {name: each.outcome for name, each in self.outcomes.items()},
            "kept": self.kept,
            "failures": [dict(zip(("name", "outcome", "message"), each, strict=True)) for each in failed],
        }

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if file := terminalreporter.config.getoption("bench_json"):
            Path(file).write_text(json.dumps(self._report()), encoding="utf-8")
        why = f"; {self._why}" if self._why else self._changed
        line = f"bench: step {self.step}: {len(self.outcomes)} tests run, {len(self.kept)} results kept{why}"
        terminalreporter.write_line(escape_line(line))


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
