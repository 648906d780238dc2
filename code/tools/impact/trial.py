"""A package's tests under an edit: all of them plain, and real sessions of `bench code run` and of pytest-testmon."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path

import bench_code
from bench_code.units import parse
from impact.mutants import Mutant
from impact.packages import Package, git

Table = dict[str, str]
"""For each test its result: passed, skipped or failed."""
TOOLS = Path(__file__).parents[1]
WAIT = 600.0
"""Seconds of waiting after which a session is ended."""
SLOWER = 3
"""An edit that makes all tests take so many times as long, and five seconds, is left out."""
PLAIN = "plain"
GONE = "gone"
"""The result of a test that is not there."""
COARSE = {"xpassed": "passed", "xfailed": "skipped", "error": "failed"}
"""How pytest's own reports name what `bench code` tells more finely."""
ON = "--continue-on-collection-errors"
BENCH = (str(Path(sys.executable).with_name("bench")), "code", "run", "--json", ON)
PYTEST = (sys.executable, "-m", "pytest", "-q", ON, "-p", "impact.outcomes")
PROGRAMS = {PLAIN: (*PYTEST, "-p", "no:testmon"), "bench": BENCH, "testmon": (*PYTEST, "--testmon")}
"""What a user types, before the folder of the tests."""
VARIABLES = {name: os.environ[name] for name in ("PATH", "HOME", "LOCPATH") if name in os.environ}
VARIABLES |= {"LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
"""The variables of every session, beside its own path. No other variable of the caller reaches a session."""
STATES = {"bench": Path(".git", "bench-code"), "testmon": Path(".testmondata")}
SELECTORS = ("testmon", "bench")
SELECTION = ("contents", "memory", "present", "probes", "pytest_session", "store", "units", "validity", "watching")
"""The modules of `bench code` on which depends which tests run, and how long that takes. They are its version here."""


@dataclass(frozen=True)
class Session:
    """What a user sees after a session, and what it took.

    table         the result of each test that ran
    kept          the results that are said to hold of the tests that did not run
    wall          seconds
    processor     seconds of the processor
    """

    table: Table
    kept: Table
    wall: float
    processor: float


class Suite:
    """A package's tests, in a tree of its own for each selector.

    Each session after an edit is kept in a file under a digest of the edit and the selector's version. So a second call goes on
    where a first was ended.

    Args:
        package: The package.
        root: The top of its tree, which stays as it is.
    """

    def __init__(self, package: Package, root: Path):
        self.package, self.root, self.work = package, root, root.parent
        self._trees: dict[str, Path] = {}

    # The unchanged suite

    @cached_property
    def base(self) -> Table:
        """The results of the unchanged suite that two plain runs agree on."""
        one, two = (self.session(PLAIN, None, number) for number in (0, 1))
        if one is None or two is None or not one.table:
            sys.exit(f"impact: the tests of {self.package.release} do not run here; try pytest {self.package.tests}")
        return {test: result for test, result in one.table.items() if two.table.get(test) == result}

    @cached_property
    def unsteady(self) -> set[str]:
        """The tests that differ between two plain runs. They are left out."""
        tables = [session.table for number in (0, 1) if (session := self.session(PLAIN, None, number)) is not None]
        return {test for table in tables for test in table} - self.base.keys()

    # Sessions

    def session(self, selector: str, edit: Mutant | None, number: int = 0) -> Session | None:
        """What comes out of an edited tree, or of the unchanged tree; None if it does not end.

        Args:
            selector: "plain" for all tests, or the selector.
            edit: The edit, which has no path where nothing changes; None, or what begins with "first", for the first session,
                after which the selector's state is set aside.
            number: Which of several sessions of the same edit.
        """
        begins = edit is None or edit.what.startswith("first")
        about = (edit.path, edit.content, edit.what if not edit.path else "") if edit and not begins else ()
        words = (selector, version_of(selector), self.package.release, *about, str(number))
        file = self.work / "sessions" / f"{hashlib.sha256(chr(0).join(words).encode()).hexdigest()[:24]}.json"
        if not file.exists():
            if not begins and selector in STATES:
                self.session(selector, None)
            found = self.run(selector, edit, begins)
            if begins and found is not None:
                self._set_aside(selector)
            file.parent.mkdir(exist_ok=True)
            file.with_suffix(".part").write_text(json.dumps(found and asdict(found)), encoding="utf-8")
            file.with_suffix(".part").rename(file)
        read = json.loads(file.read_text(encoding="utf-8"))
        return read and Session(**read)

    def run(self, selector: str, edit: Mutant | None, begins: bool = False) -> Session | None:
        """Run a session now.

        Args:
            selector: "plain" for all tests, or the selector.
            edit: The edit; None if nothing is changed.
            begins: Whether the selector has no state yet; otherwise the state is as the first session left it.
        """
        tree = self._tree(selector)
        self._restore(selector, begins)
        limit = None
        if edit is not None and edit.path and (one := self.session(PLAIN, None)) is not None:
            limit = int(SLOWER * one.processor * (1 if selector == PLAIN else 5)) + 5
        with _edited(tree, edit):
            return run_session(tree, self.package, selector, limit)

    def _tree(self, selector: str) -> Path:
        """The tree of a selector: a copy, from which what an interrupted session left is taken away."""
        if selector not in self._trees:
            tree = self._trees[selector] = self.work / f"{self.package.release}.{selector}"
            if not tree.exists():
                shutil.copytree(self.root, tree, symlinks=True)
            for words in (("checkout", "-q", "-f", "."), ("clean", "-q", "-f", "-d")):
                git(tree, *words)
        return self._trees[selector]

    def _state(self, selector: str) -> tuple[Path, Path]:
        """The folder or file of a selector's state, and where it is set aside."""
        return self._tree(selector) / STATES[selector], self.work / "states" / f"{self.package.release}-{version_of(selector)}"

    def _set_aside(self, selector: str) -> None:
        if selector in STATES:
            state, aside = self._state(selector)
            if state.is_file():  # pytest-testmon leaves a log beside its database
                with closing(sqlite3.connect(state)) as database:
                    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            _copy(state, aside / "state")

    def _restore(self, selector: str, begins: bool) -> None:
        """Bring a selector's state back to what the first session left, or to none."""
        if selector in STATES:
            state, aside = self._state(selector)
            shutil.rmtree(state, ignore_errors=True)
            for beside in state.parent.glob(f"{state.name}*"):
                beside.unlink()
            if not begins:
                _copy(aside / "state", state)


@dataclass(frozen=True)
class Outcome:
    """What a session said of an edited tree, in numbers of tests, beside a plain run of the same tree.

    tests      the tests of the edited tree
    changed    those whose result the edit changed
    lost       those of them of which the session says the old result
    wrong      those that ran in the session and came out otherwise than in the plain run
    ran        those that ran
    """

    tests: int
    changed: int
    lost: int
    wrong: int
    ran: int


def compare(suite: Suite, selector: str, edit: Mutant) -> Outcome | None:
    """Compare what a session says of an edited tree with a plain run; None if the plain run, or the session, did not end.

    A test on which two plain runs of the edited tree differ is left out.
    """
    plain, session = suite.session(PLAIN, edit), suite.session(selector, edit)
    if plain is None or session is None:
        return None
    unsteady, kept = suite.unsteady, session.kept
    if selector == "testmon":  # it keeps no results; its user goes on believing what was there before
        kept = {test: result for test, result in suite.base.items() if test in plain.table}
    outcome, differing = _compared(suite.base, plain.table, session, kept, unsteady)
    if (differing or plain.table.keys() - suite.base.keys() - unsteady) and (
        again := suite.session(PLAIN, edit, 2)
    ) is not None:
        tests = again.table.keys() | plain.table.keys()
        unsteady = unsteady | {test for test in tests if again.table.get(test, GONE) != plain.table.get(test, GONE)}
        outcome, _ = _compared(suite.base, plain.table, session, kept, unsteady)
    return outcome


def _compared(base: Table, plain: Table, session: Session, kept: Table, unsteady: set[str]) -> tuple[Outcome, bool]:
    said = kept | session.table
    tests = (base.keys() | plain.keys()) - unsteady
    changed = {test for test in tests if base.get(test, GONE) != plain.get(test, GONE)}
    lost = {test for test in changed if said.get(test, GONE) == base.get(test, GONE)}
    wrong = {test for test in tests & session.table.keys() if session.table[test] != plain.get(test, GONE)}
    there = plain.keys() - unsteady
    return Outcome(len(there), len(changed), len(lost), len(wrong), len(there & session.table.keys())), bool(lost | wrong)


def run_session(tree: Path, package: Package, selector: str, limit: int | None) -> Session | None:
    """Run a session in a tree, as a user types it.

    Args:
        tree: Where it runs.
        package: The package.
        selector: "plain" for all tests, or the selector.
        limit: Seconds of the processor after which it is ended.

    Returns:
        What its user sees; None if it does not end within the limit.
    """
    to = tree.parent / f"{tree.name}.json"
    to.unlink(missing_ok=True)
    path = os.pathsep.join((str(tree / package.source), *([] if selector == "bench" else [str(TOOLS)])))
    variables = VARIABLES | {"PYTHONPATH": path, "IMPACT_OUTCOMES": str(to)}
    before, began = os.times(), time.monotonic()
    with to.with_suffix(".out").open("w+") as out, to.with_suffix(".err").open("w+") as err:
        words = (*PROGRAMS[selector], package.tests)
        with subprocess.Popen(words, cwd=tree, env=variables, stdout=out, stderr=err, stdin=subprocess.DEVNULL) as process:
            if limit is not None:
                resource.prlimit(process.pid, resource.RLIMIT_CPU, (limit, limit))
            try:
                if process.wait(WAIT) < 0:
                    return None
            except subprocess.TimeoutExpired:
                process.kill()
                return None
        wall, after = time.monotonic() - began, os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        out.seek(0)
        if selector == "bench":
            found = json.loads(out.read() or "{}")
            ran, kept = (_coarse(found.get(key, {})) for key in ("ran", "kept"))
            return Session(ran, kept, round(wall, 2), round(spent, 2))
    ran = json.loads(to.read_text(encoding="utf-8")) if to.exists() else {}
    return Session(ran, {}, round(wall, 2), round(spent, 2))


def _coarse(table: Mapping[str, str]) -> Table:
    return {test: COARSE.get(outcome, outcome) for test, outcome in table.items()}


@contextmanager
def _edited(tree: Path, edit: Mutant | None) -> Iterator[None]:
    """The tree has this edit within the block."""
    if edit is None or not edit.path:
        yield
        return
    file = tree / edit.path
    before = file.read_bytes() if file.exists() else None
    file.write_text(edit.content, encoding="utf-8")
    _drop_bytecode(file)
    try:
        yield
    finally:
        file.write_bytes(before) if before is not None else file.unlink()
        _drop_bytecode(file)


def _drop_bytecode(source: Path) -> None:
    """Delete the compiled files of a file that was just written: by size and whole seconds they may seem to be of it."""
    for compiled in (source.parent / "__pycache__").glob(f"{source.stem}.*.pyc"):
        compiled.unlink()


def _copy(source: Path, to: Path) -> None:
    shutil.copytree(source, to) if source.is_dir() else shutil.copy2(source, to)


@cache
def version_of(selector: str) -> str:
    """Return a word for the version of a selector, or of pytest."""
    if selector != "bench":
        return version(f"pytest-{selector}" if selector != PLAIN else "pytest")
    files = (Path(bench_code.__path__[0], f"{name}.py") for name in SELECTION)
    return hashlib.sha256("".join(parse(file.read_bytes()).code for file in files).encode()).hexdigest()[:12]
