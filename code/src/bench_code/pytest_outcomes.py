"""Notes how tests come out."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest

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
