"""A package's tests: in full, and what our selector and pytest-testmon run and keep of them, each in processes of its own."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

from bench import codebase
from bench.codebase.present import platform_value
from impact.mutants import Mutant
from impact.packages import Package

Outcomes = dict[str, tuple[str, str]]
TOOLS = Path(__file__).parents[1]
LIMIT, WAIT = 90, 1800.0
"""Seconds of the processor, and of waiting, after which a session is ended."""
SLOWER = 2
"""An edit that makes the full suite take so many times as long, and three seconds, is left out, and told."""
PLAIN = ("-p", "no:testmon")
FULL = "full"
GONE = ("gone", "")
"""The outcome of a test that is there no more, or whose file cannot be collected."""
SELECTORS = {"bench": PLAIN, "testmon": ("--testmon",)}
PYTHON = os.environ.get("IMPACT_PYTHON", sys.executable)
"""The Python that has bench, pytest and pytest-testmon, and what the packages need."""
PYTEST = (PYTHON, "-m", "pytest", "-q")
PROGRAMS = {"bench": (str(Path(PYTHON).with_name("bench")), "code", "run")}
"""What a user types for a selector, where it is not pytest."""
RECORDINGS = {FULL: (PLAIN, PLAIN), "bench": (PLAIN,), "testmon": (("--testmon",),)}
"""The sessions of the unchanged suite as a user has them: each selector records it once, in the usual order."""


@dataclass(frozen=True)
class Session:
    """One run of pytest: what ran, how it came out, and the processor seconds that it took."""

    outcomes: Outcomes
    seconds: float


@dataclass(frozen=True)
class Row:
    """What one selector did for one edit, in numbers of tests; `whole` is what the full suite took, in processor seconds."""

    package: str
    mutant: str
    selector: str
    tests: int
    changed: int
    run: int
    missed: int
    distorted: int
    over_run: int
    seconds: float
    whole: float


class Suite:
    """A package's tests in a repository of its own.

    Each session is kept in a file beside the repository, under a digest of the edit and the selector's version. So no session
    is run twice, neither for two selectors nor after an interruption.
    """

    def __init__(self, package: Package, root: Path):
        self.package, self.root = package, root
        self._state = {"bench": root / ".git" / "bench-code", "testmon": root / ".testmondata"}

    # The unchanged suite

    def recorded(self, selector: str) -> list[Session]:
        """The sessions of the unchanged suite under a selector; its state after them is set aside."""
        folder = self.root.parent / "states" / f"{self.package.release}-{key(selector, *RECORDINGS[selector][0])}"
        if not (folder / "sessions.json").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            sessions = []
            for options in RECORDINGS[selector]:
                if options == RECORDINGS[selector][0]:
                    self._drop(selector)
                sessions.append(self._ended(self.run(selector, *options)))
            _write_out(self._state.get(selector))
            self._copy(self._state.get(selector), folder / "state")
            (folder / "sessions.json").write_text(json.dumps([asdict(session) for session in sessions]), encoding="utf-8")
        return [_session(each) for each in json.loads((folder / "sessions.json").read_text(encoding="utf-8"))]

    def _ended(self, session: Session | None) -> Session:
        if session is None or not session.outcomes:
            sys.exit(f"impact: the tests of {self.package.release} do not run here; try pytest {self.package.tests}")
        return session

    def tests(self) -> set[str]:
        """The tests whose results are compared: those that differ in any session of the unchanged suite are left out."""
        sessions = [session for selector in (FULL, "bench") for session in self.recorded(selector)]
        return {test for test in self.base if len({session.outcomes.get(test) for session in sessions}) == 1}

    @cached_property
    def base(self) -> Outcomes:
        """The results of the unchanged suite, without those that differ in three full sessions."""
        first, *others = (session.outcomes for session in self.recorded(FULL))
        return {test: outcome for test, outcome in first.items() if all(other.get(test) == outcome for other in others)}

    def differing(self) -> list[str]:
        """The tests that come out the same in all full sessions, and otherwise while our selector records them."""
        recorded = self.recorded("bench")
        return sorted(test for test in self.base if any(each.outcomes.get(test) != self.base[test] for each in recorded))

    def costs(self) -> dict[str, str]:
        """What the unchanged suite costs in full and recorded: the least processor seconds of its sessions."""
        return {name: f"{min(session.seconds for session in self.recorded(name)):.2f}" for name in (FULL, "bench")}

    # Edits

    @contextmanager
    def edited(self, edit: Mutant, selector: str, guarded: bool = False) -> Iterator[None]:
        """The tree has this edit within the block, and the selector's state is as the unchanged suite left it.

        Args:
            edit: The edit.
            selector: The selector.
            guarded: Whether `bench code` may run all tests unrecorded where that is cheaper. It then loses no result.
        """
        self.restore(selector)
        if selector == "bench" and not guarded:
            with closing(sqlite3.connect(self._state["bench"] / "state.db")) as database, database:
                database.execute("UPDATE executions SET seconds = 0")
        file = self.root / edit.path
        before = file.read_bytes() if file.exists() else None
        file.write_text(edit.content, encoding="utf-8")
        _drop_bytecode(file)
        try:
            yield
        finally:
            file.write_bytes(before) if before is not None else file.unlink()
            _drop_bytecode(file)

    def session(self, selector: str, edit: Mutant) -> Session | None:
        """What a selector, or the full suite, ran of an edited tree; None where it did not end."""
        options = SELECTORS.get(selector, PLAIN)
        name = key(selector, *options, self.package.release, self.package.tests, edit.path, edit.content)

        def run() -> Session | None:
            base = self.recorded(selector)
            limit = LIMIT if selector != FULL else int(SLOWER * base[0].seconds) + 3
            with self.edited(edit, selector):
                return self.run(selector, *options, limit=limit)

        return once(self._file_of(name), run)

    def decided(self, edit: Mutant, whole: Session) -> Session:
        """What our selector would run of an edited tree, with the results of the full suite: nothing is run, or timed.

        This process must run under the Python of the sessions, and with their variables.
        """
        self.recorded("bench")
        os.environ |= environment(self._path())
        sys.path[:0] = [str(self.root), str(self.root / self.package.source)]  # what is installed there counts, twice too
        platform_value.cache_clear()
        with self.edited(edit, "bench"):
            state = codebase.ExecutionState.open(self.root)
            state.step("run")
            kept = {
                name
                for (layout,) in state.store.rows("SELECT DISTINCT layout FROM executions")
                for name in state.decide(layout).kept
            }
            kept = set() if state.has_new_effects(["test_*.py", "*_test.py"], [self.root / self.package.tests]) else kept
        del sys.path[:2]
        run = (self.base.keys() | whole.outcomes.keys()) - kept
        return Session({test: whole.outcomes.get(test, GONE) for test in run}, 0.0)

    def times(self, edit: Mutant | None, rounds: int) -> dict[str, float]:
        """The least processor seconds of all tests and of ours, taken in turns, after an edit, or where nothing changed."""
        spent: dict[str, list[float]] = {FULL: [], "bench": []}
        for _ in range(rounds):
            for selector, taken in spent.items():
                self.restore(selector)
                with self.edited(edit, selector, guarded=True) if edit is not None else nullcontext():
                    taken.append(self._ended(self.run(selector, *SELECTORS.get(selector, PLAIN), limit=3 * LIMIT)).seconds)
        return {selector: min(taken) for selector, taken in spent.items()}

    def changed(self, edit: Mutant) -> set[str]:
        """The tests whose results an edit changes."""
        whole = self.session(FULL, edit)
        return {test for test in self.base if whole is not None and whole.outcomes.get(test) != self.base[test]}

    def row(self, selector: str, edit: Mutant, whole: Session, selected: Session) -> Row:
        """What a selector did for one edit, beside the full suite."""
        tests = self.tests()
        changed = self.changed(edit) & tests
        ran = tests & set(selected.outcomes)
        # A test that has gone, say with a file that cannot be collected any more, was not kept where its file was collected.
        gone = _files(selected.outcomes, "collection")
        kept = changed - ran if selected.outcomes else set()  # a session that cannot begin keeps nothing
        missed = {test for test in kept if test.partition("::")[0] not in gone}
        distorted = {test for test in ran if selected.outcomes[test] != whole.outcomes.get(test, GONE)}
        where = f"{edit.path}:{edit.line} {edit.what}"
        counts = (len(tests), len(changed), len(ran), len(missed), len(distorted), len(ran - changed))
        return Row(self.package.release, where, selector, *counts, round(selected.seconds, 3), round(whole.seconds, 3))

    # Sessions

    def _path(self) -> tuple[Path, ...]:
        return self.root / self.package.source, TOOLS

    def _file_of(self, name: str) -> Path:
        """The file that keeps one session, or decision."""
        folder = self.root.parent / "sessions"
        folder.mkdir(exist_ok=True)
        return folder / f"{name}.json"

    def run(self, selector: str, *options: str, limit: int = LIMIT) -> Session | None:
        """The suite under these options; None where it does not end within so many seconds of the processor."""
        words = ("--continue-on-collection-errors", *options, self.package.tests)
        to = self.root.parent / f"{self.package.release}.json"
        return session(self.root, self._path(), words, to, limit, PROGRAMS.get(selector, PYTEST))

    def _drop(self, selector: str) -> None:
        state = self._state.get(selector)
        if state is not None:
            shutil.rmtree(state, ignore_errors=True)
            for beside in state.parent.glob(f"{state.name}*"):
                beside.unlink()

    def restore(self, selector: str) -> None:
        """Bring a selector's state back to what the unchanged suite left."""
        folder = self.root.parent / "states" / f"{self.package.release}-{key(selector, *RECORDINGS[selector][0])}"
        self._drop(selector)
        self._copy(folder / "state", self._state.get(selector))

    @staticmethod
    def _copy(source: Path | None, to: Path | None) -> None:
        if source is not None and to is not None:
            shutil.copytree(source, to) if source.is_dir() else shutil.copy2(source, to)


def _drop_bytecode(source: Path) -> None:
    """Delete the compiled files of a file that was just written: by size and whole seconds they may seem to be of it."""
    for compiled in (source.parent / "__pycache__").glob(f"{source.stem}.*.pyc"):
        compiled.unlink()


def _write_out(state: Path | None) -> None:
    """Bring what pytest-testmon left in a log beside its database into the database, which alone is set aside."""
    if state is not None and state.is_file():
        with closing(sqlite3.connect(state)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def once(file: Path, run: Callable[[], Session | None]) -> Session | None:
    """A session that a file keeps: it is run where the file is not there yet."""
    if not file.exists():
        session = run()
        file.parent.mkdir(exist_ok=True)
        file.with_suffix(".part").write_text(json.dumps(session and asdict(session)), encoding="utf-8")
        file.with_suffix(".part").rename(file)
    found = json.loads(file.read_text(encoding="utf-8"))
    return found and _session(found)


def environment(path: Sequence[Path]) -> dict[str, str]:
    """The variables under which sessions and decisions are made, with the folders from which modules are imported."""
    others = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return others | {"PYTHONPATH": os.pathsep.join(map(str, path)), "PYTHONHASHSEED": "0"}


def session(
    root: Path,
    path: Sequence[Path],
    words: Sequence[str],
    to: Path,
    limit: int = LIMIT,
    program: Sequence[str] = PYTEST,
) -> Session | None:
    """One run of pytest in a tree.

    Args:
        root: Where it runs.
        path: The folders from which its modules are imported.
        words: What pytest is told.
        to: The file that takes the outcomes.
        limit: Seconds of the processor.
        program: What runs.

    Returns:
        What ran; None where it does not end within the limit.
    """
    to.unlink(missing_ok=True)
    began = os.times()
    with subprocess.Popen(
        (*program, "-p", "impact.outcomes", *words),
        cwd=root,
        env=environment(path) | {"IMPACT_OUTCOMES": str(to)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (limit, limit))
        try:
            if process.wait(WAIT) < 0:
                return None
        except subprocess.TimeoutExpired:
            process.kill()
            return None
    ended = os.times()
    seconds = ended.children_user + ended.children_system - began.children_user - began.children_system
    found = json.loads(to.read_text(encoding="utf-8")) if to.exists() else {}
    return _session({"outcomes": found, "seconds": seconds})


def _session(found: Mapping[str, object]) -> Session:
    outcomes: Mapping[str, tuple[str, str]] = found["outcomes"]  # type: ignore[assignment]
    return Session({name: (outcome, detail) for name, (outcome, detail) in outcomes.items()}, float(str(found["seconds"])))


def key(selector: str, *words: str) -> str:
    """A digest of what a session depends on: the selector's version, its options, and further words."""
    if selector == "bench":
        files = sorted(Path(codebase.__path__[0]).glob("*.py"))
        of = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    else:
        of = version(f"pytest-{selector}") if selector != FULL else version("pytest")
    return hashlib.sha256("\0".join((of, *words)).encode()).hexdigest()[:24]


def _files(outcomes: Mapping[str, tuple[str, str]], detail: str) -> set[str]:
    return {name.partition("::")[0] for name, (_, why) in outcomes.items() if why == detail}
