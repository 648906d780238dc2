"""Notes how tests come out, and why a session ended, for those who read the result."""

from __future__ import annotations

import signal
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest

from bench_code.validity import BAD

WORST = ("passed", "xpassed", "xfailed", "skipped", "failed", "error")
"""Outcomes of a test's phases, the least serious first. The test has the most serious outcome of its phases."""

MAX_TEXT = 4000
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


class Outcomes:
    """A plug-in of pytest that notes how each test came out.

    Attributes:
        outcomes: How each test that ran came out.
        kept: The tests that do not run, each with its kept outcome.
    """

    def __init__(self) -> None:
        self.outcomes: dict[str, ItemOutcome] = {}
        self.kept: dict[str, str] = {}
        self._uncollected: dict[str, str] = {}
        self._reason, self._exit_code = "", 0

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
            self._uncollected[report.nodeid] = report.longreprtext[-MAX_TEXT:]

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
            noted.message = report.longreprtext[-MAX_TEXT:]
        noted.seconds += call.duration
        return report

    def report(self) -> dict[str, object]:
        """Return what a program wants to know of the session."""
        nothing = "no test was chosen" if self._exit_code == pytest.ExitCode.NO_TESTS_COLLECTED else ""
        failed = [(name, "error", message) for name, message in self._uncollected.items()]
        failed += [(name, each.outcome, each.message) for name, each in self.outcomes.items() if each.outcome in BAD]
        return {
            "exit": self._exit_code,
            "reason": self._reason or nothing,
            "ran": {name: each.outcome for name, each in self.outcomes.items()},
            "kept": self.kept,
            "failures": [dict(zip(("name", "outcome", "message"), each, strict=True)) for each in failed],
        }
