"""Records which code runs and what it reads, for each test, module, fixture and collection apart.

Functions that run are recorded one by one (`bench_code.calls`), as versions are those of functions. A module is recorded
while it is imported. Whatever imports it later relies on that record.
"""

from __future__ import annotations

import builtins
import functools
import gc
import importlib
import importlib.util
import linecache
import os
import random
import sys
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from bench_code import dates
from bench_code.calls import MONITORED, Monitored, Profiled, key_of
from bench_code.git import is_text
from bench_code.naming import PathNames
from bench_code.present import FROM_OUTSIDE, Present, platform_value
from bench_code.record import CHANCE, CLOCK, ExecutionContext
from bench_code.records import RecordMaker
from bench_code.watching import disguised, unwatched, watching
from bench_code.workspace import drop_outdated_bytecode

__tracebackhide__ = True
"""pytest shows no frame of this module: a failure tells of the project's code only."""
UNSTABLE_CALLS = {
    "<built-in method now>": CLOCK,
    "<built-in method utcnow>": CLOCK,
    "<built-in method today>": CLOCK,
    "<built-in method _posixsubprocess.fork_exec>": "starts a process",
}
"""Functions in C that no wrapper and no audit event shows, by their names in the profiler, with what they do."""

MAKERS = ("script", "step")
"""Kinds of executions whose purpose is to write files. The result of a test that writes into the tree is never kept."""


WIDER = ("collection", "module", "fixture")
"""Kinds of contexts whose outcome several tests share."""


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable the garbage collector in the block. It would take much of the time in which many records are made."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class Recorder:
    """Records the contexts of one process.

    Args:
        root: The folder whose code and files have versions. Of packages installed in it only the release counts.
        ignored: Reasons for which a result is kept nevertheless: CLOCK, CHANCE.

    Attributes:
        session: The context of all that is recorded outside of other contexts. Each execution relies on it.
        records: Makes the records of contexts that have ended.
    """

    def __init__(self, root: Path, ignored: Collection[str] = ()):
        self.root = root.resolve()
        self.present = Present(self.root)
        self.session = ExecutionContext("session", "")
        self.session.facts["platform", ""] = platform_value()
        for variable in FROM_OUTSIDE:
            self.session.note("environment", variable, self.present.variable(variable))
        self._stack = [self.session]
        self._profiles: list[Profiled | Monitored] = [Monitored() if MONITORED else Profiled()]
        self._running = [False]
        self._threads: list[tuple[threading.Thread, Profiled | None, dict[int, int], ExecutionContext]] = []
        self._names = PathNames(self.root)
        self.records = RecordMaker(self.present, self._names, self.session, ignored)
        self._writers: dict[str, ExecutionContext] = {}
        self._drawn: object = None
        self._caches: weakref.WeakSet[Any] = weakref.WeakSet()
        self._held: weakref.WeakSet[Any] = weakref.WeakSet()
        self._loaded_before()

    @property
    def current(self) -> ExecutionContext:
        return self._stack[-1]

    @contextmanager
    def recording(self, *loaders: Any) -> Iterator[None]:
        """Record what this process does in the block.

        Args:
            loaders: Classes of module loaders, beside Python's, that have an `exec_module`.
        """
        with ExitStack() as stack:
            stack.enter_context(watching(self))
            for owner, name, wrapped in self._wrappers(loaders):
                original = getattr(owner, name)
                stack.callback(setattr, owner, name, original)
                setattr(owner, name, disguised(wrapped, original))
            threading.setprofile(self._in_thread)
            stack.callback(threading.setprofile, None)
            stack.callback(self._count_calls)
            with self.calls():
                yield

    @contextmanager
    def context(self, context: ExecutionContext, calls: bool = True) -> Iterator[ExecutionContext]:
        """Record what the block does as part of this context alone.

        Args:
            context: The context.
            calls: Whether the functions that run are recorded from the start; else only within the blocks of `calls()`.
        """
        self._pause()
        outer, self._drawn = self._drawn, random.getstate()
        self._stack.append(context)
        self._profiles.append(Monitored() if MONITORED else Profiled())
        self._running.append(False)
        try:
            with self.calls() if calls else nullcontext():
                yield context
        finally:
            self._pause()
            self._count_calls()
            state = self._note_draws()
            if context.kind in WIDER:
                self._hold_caches(context)
            self._stack.pop()
            self._profiles.pop()
            self._running.pop()
            self._drawn = outer and state
            self._go_on()

    @contextmanager
    def calls(self) -> Iterator[None]:
        """Record which functions run in the block, as part of the current context. Recording slows all Python code down."""
        if self._running[-1] or self.current.silent:
            yield
            return
        self._running[-1] = True
        self._go_on()
        try:
            yield
        finally:
            self._pause()
            self._running[-1] = False

    def uncounted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same, but that no context records, with all that it calls."""

        def apart(*arguments: Any) -> Any:
            self._pause()
            try:
                return function(*arguments)
            finally:
                self._go_on()

        return apart

    def _go_on(self) -> None:
        if self._running[-1]:
            self._profiles[-1].enable()

    def _pause(self) -> None:
        """Stop recording calls, and add to the current context what threads have run since the last pause."""
        context = self._stack[-1]
        if self._running[-1] and not self._profiles[-1].disable():
            context.volatile.setdefault("sets a profiler of its own", "")
        if self._threads:  # only now: the profiler of a thread that has ended stops the one that runs here when it is dropped
            self._of_threads(context)

    def _count_calls(self) -> None:
        """Add the recorded functions to the current context."""
        self._count(self._stack[-1], self._profiles[-1].functions())
        self._profiles[-1].clear()

    def _in_thread(self, frame: FrameType, _event: str, _argument: object) -> None:
        """Profile a thread that begins, at its first call."""
        sys.setprofile(None)
        self.current.codes.add(key_of(frame.f_code))
        profile = None if MONITORED else Profiled()  # `sys.monitoring` sees all threads as it is
        self._threads.append((threading.current_thread(), profile, {}, self.current))
        if profile is not None:
            profile.enable()

    def _of_threads(self, context: ExecutionContext) -> None:
        with uncollected():  # nothing may give the thread its turn while its calls are counted
            frames = sys._current_frames()
            for thread, profile, seen, starter in self._threads:
                counts = profile.counts() if profile is not None else ()
                self._count(context, [function for function, count in counts if seen.get(id(function)) != count])
                seen.update((id(function), count) for function, count in counts)
                frame = frames.get(thread.ident or 0) if context is not self.session or context is starter else None
                while frame is not None:  # the profiler counts a call when it returns, and a server's loop never does
                    context.codes.add(key_of(frame.f_code))
                    frame = frame.f_back
        self._threads = [thread for thread in self._threads if thread[0].is_alive()]

    def _count(self, context: ExecutionContext, functions: Iterable[CodeType | str]) -> None:
        """Add to a context the functions that ran and are not installed, and what functions in C did unseen otherwise."""
        name_of, codes = self._names.of, context.codes
        for function in functions:
            if not isinstance(function, str):
                if name_of(function.co_filename) is not None:
                    codes.add(key_of(function))
            elif function in UNSTABLE_CALLS and not any(why.startswith(UNSTABLE_CALLS[function]) for why in context.volatile):
                context.volatile[UNSTABLE_CALLS[function]] = ""

    # What running code reads (see Listener)

    def read(self, kind: str, path: str, value: Callable[[str], str]) -> None:
        name, writer = self._names.of(path), self._writers.get(path)
        if writer is not None:  # the file is an outcome of its writer, and no input
            self.current.uses.add(writer)
        elif name is not None and (kind, name) not in self.current.facts:
            if is_text(name):
                self.current.note(kind, name, value(path))
            else:
                self.unstable("reads a path whose name is not UTF-8")

    def wrote(self, path: str) -> None:
        self._writers[path] = self.current
        name = self._names.of(path)
        if name is None or name.startswith(os.sep):
            return
        if self.current.kind in MAKERS:
            self.current.outputs.add(name)
        else:
            self.unstable(f"writes into the tree ({name.encode(errors='backslashreplace').decode()})")

    def keep_outputs(self, context: ExecutionContext) -> None:
        """Note the files that a script wrote into the tree. Its result holds as long as they are as the script left them."""
        with unwatched():
            for name in context.outputs:
                context.note("file", name, self.present.value("file", name))

    def variable(self, name: str) -> None:
        if not is_text(name):
            self.unstable("reads a variable whose name is not UTF-8")
        elif ("environment", name) not in self.current.facts:  # a value that differs from the start was set by recorded code
            self.current.note("environment", name, self.present.variable(name))

    def unstable(self, why: str) -> None:
        if why in self.current.volatile:
            return
        places = list(self._places(sys._getframe(1)))
        if self.current.kind == "module" and why in (CLOCK, CHANCE) and places and places[-1][0] == self.current.name:
            self.current.drawn[places[-1][1]] = why
        else:
            self.current.volatile[why] = f"{places[0][0]}:{places[0][1]}" if places else ""

    def _places(self, frame: FrameType | None) -> Iterator[tuple[str, int]]:
        """Yield the file and line of each frame of the tree, up to the top of a module that is imported."""
        while frame is not None:
            path = self._names.of(frame.f_code.co_filename)
            if path is not None and not path.startswith(os.sep):
                yield path, frame.f_lineno
                if frame.f_code.co_name == "<module>":
                    return
            frame = frame.f_back

    def seeded(self) -> None:
        self._note_draws()
        self._drawn = None  # what this context draws from now on is the same each time

    def _note_draws(self) -> object:
        """Note whether the current context drew random numbers since it began. Return the state of the generator."""
        state = random.getstate()
        if self._drawn is not None and state != self._drawn:
            self.current.volatile.setdefault(CHANCE, "")
        return state

    # Modules

    def _wrappers(self, loaders: tuple[Any, ...]) -> Iterator[tuple[Any, str, Any]]:
        yield builtins, "__import__", self._importing(builtins.__import__)
        yield functools, "lru_cache", self._caching(functools.lru_cache)
        yield importlib, "import_module", self._by_import_module(importlib.import_module)
        yield importlib.util, "find_spec", self._by_import_module(importlib.util.find_spec)
        for loader in (SourceFileLoader, *loaders):
            yield loader, "exec_module", self._executing(loader.exec_module)

    def _caching(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
            made = original(maxsize, typed)
            if callable(maxsize):
                return self._known_cache(made)
            return lambda function: self._known_cache(made(function))

        return lru_cache

    def _known_cache(self, cached: Any) -> Any:
        file = getattr(getattr(cached.__wrapped__, "__code__", None), "co_filename", "")
        path = self._names.of(file) if file else None
        if path is not None and not path.startswith(os.sep):
            self._caches.add(cached)
        return cached

    def forget(self) -> None:
        """Clear the caches that a test filled, and the source lines of files that tracebacks have read.

        Then each test that needs them is seen to compute or read them. Lines of generated code are in no file, and stay.
        """
        for file in [file for file, entry in linecache.cache.items() if len(entry) > 1 and entry[1] is not None]:
            del linecache.cache[file]
        for cached in set(self._caches) - set(self._held):
            cached.cache_clear()

    def _hold_caches(self, context: ExecutionContext) -> None:
        """Keep what a collection, a module or a fixture put into caches. Every test may use it, so every test relies on it."""
        for cached in list(self._caches):
            if cached not in self._held and cached.cache_info().currsize:
                self._held.add(cached)
                self.session.uses.add(context)

    def _importing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def imported(name: str, globals_: Any = None, locals_: Any = None, fromlist: Any = (), level: int = 0) -> Any:
            package = (globals_ or {}).get("__package__") or "" if level else ""
            names = tuple(fromlist or ())
            self.current.imports.add((package, name, level, names))
            missing = names
            try:
                result = original(name, globals_, locals_, fromlist, level)
                missing = tuple(each for each in names if each not in vars(result)) if hasattr(result, "__path__") else ()
                return result
            finally:  # of modules that are not there, those that come to be there change the import
                self.current.imports |= {(package, f"{name}.{member}".lstrip("."), level, ()) for member in missing}

        return imported

    def _by_import_module(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def named(name: str, package: str | None = None) -> Any:
            stripped = name.lstrip(".")
            self.current.imports.add((package or "", stripped, len(name) - len(stripped), ()))
            return original(name, package)

        return named

    def _executing(self, original: Callable[..., None]) -> Callable[..., None]:
        def exec_module(loader: Any, module: ModuleType) -> None:
            spec = module.__spec__
            path = None if spec is None or spec.origin is None else self._names.of(spec.origin)
            if path is None or spec is None:
                undrawn = self._drawn == random.getstate()
                original(loader, module)
                if undrawn:  # draws of an installed package during its import belong to no context
                    self._drawn = random.getstate()
                if spec is not None and spec.name == dates.PARSER:
                    dates.without_clock(module)
                return None
            context = self.records.by_path.setdefault(path, ExecutionContext("module", path))
            self.records.by_name[spec.name] = context
            self.current.uses.add(context)
            kind = (
                "file" if path.startswith(os.sep) else "skeleton"
            )  # a module that is neither installed nor in the tree counts as a file
            with self.context(context, calls=False):
                with unwatched():
                    drop_outdated_bytecode(self.root / path)
                    context.note(kind, path, self.present.value(kind, path))
                with self.calls():
                    return original(loader, module)

        return exec_module

    def _loaded_before(self) -> None:
        """Note the modules of the tree that were imported before the recording. What uses one relies on the files of all."""
        early = ExecutionContext("module", "imported before the recording")
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            path = self._names.of(file) if isinstance(file, str) else None
            if path is not None:
                early.note("file", path, self.present.value("file", path))
                self.records.by_name[name] = self.records.by_path[path] = early
