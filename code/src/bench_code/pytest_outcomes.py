"""Notes how tests come out, and runs tests again in a process that records nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench_code.record import Execution, Record

WORST = ("passed", "xpassed", "xfailed", "skipped", "failed", "error")
"""Outcomes of a test's phases, the least serious first. The test has the most serious outcome of its phases."""
MOST_TEXT = 4000
"""The most letters that are kept of what pytest writes of a failure; the end tells most."""


@dataclass
class ItemOutcome:
    """How a test came out.

    outcome    a word of WORST
    detail     the type of the error
    seconds    its duration
    message    what pytest wrote of a failure
    """

    outcome: str = "passed"
    detail: str = ""
    seconds: float = 0.0
    message: str = ""

    def execution(self, name: str, volatile: str, records: Iterable[Record] = ()) -> Execution:
        """Return the execution of the test of this name, with its records and why its result is not kept."""
        return Execution("test", name, self.outcome, self.detail, self.seconds, tuple(records), volatile, self.message)


class Outcomes:
    """A plug-in of pytest that notes how each test came out."""

    def __init__(self) -> None:
        self.outcomes: dict[str, ItemOutcome] = {}

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
        is_first = item.nodeid not in self.outcomes
        noted = self.outcomes.setdefault(item.nodeid, ItemOutcome())
        if WORST.index(outcome) > WORST.index(noted.outcome) or is_first:
            noted.outcome, noted.detail = outcome, call.excinfo.typename if call.excinfo is not None else ""
        if report.failed:
            noted.message = report.longreprtext[-MOST_TEXT:]
        noted.seconds += call.duration
        return report


class PlainSession(Outcomes):
    """The plug-in of a session with `--bench-plain`: it runs the tests that a file names, and writes how they came out.

    Args:
        file: The file.
    """

    def __init__(self, file: Path):
        super().__init__()
        self._file = file
        self._names = {name: at for at, name in enumerate(json.loads(file.read_text("utf-8")))}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((item for item in items if item.nodeid in self._names), key=lambda item: self._names[item.nodeid])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        self._file.write_text(json.dumps({name: vars(outcome) for name, outcome in self.outcomes.items()}), encoding="utf-8")


class PlainRuns:
    """Runs tests of a session again, each time in a new process that records nothing.

    Args:
        config: The session's configuration.
        requested: The words of its command line that name files, folders and tests.
    """

    def __init__(self, config: pytest.Config, requested: Collection[str]):
        given = [str(word) for word in config.invocation_params.args]
        is_command = bool(given) and sys.orig_argv[-len(given) :] == given
        self._command = (sys.executable, *(sys.orig_argv[1 : -len(given)] if is_command else ("-m", "pytest")))
        self._options = [word for word in given if word not in requested]
        self._requested, self._environment = sorted(requested), dict(os.environ)
        self._folder, self._root = config.invocation_params.dir, config.rootpath

    def outcomes(self, names: Collection[str], alone: bool = False) -> dict[str, ItemOutcome]:
        """Return how tests come out in the order of their names, where nothing is recorded.

        Args:
            names: The names.
            alone: Whether only the files of these tests are collected, and not all that the session collects.
        """
        if not names:
            return {}
        files = sorted({str(self._root / name.partition("::")[0]) for name in names}) if alone else self._requested
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch, "plain.json")
            file.write_text(json.dumps(list(names)), encoding="utf-8")
            words = ("-p", "bench_code.plugin", *self._options, f"--bench-plain={file}", *files)
            subprocess.run(
                (*self._command, *words),
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
            written = json.loads(file.read_text("utf-8"))
        return {name: ItemOutcome(**each) for name, each in written.items()} if isinstance(written, dict) else {}
