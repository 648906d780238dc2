"""A pytest plug-in that writes each test's outcome to the file that IMPACT_OUTCOMES names: the same for all selectors."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

FOUND: dict[str, list[str]] = {}
WORST = ("passed", "skipped", "failed")


def pytest_runtest_logreport(report: Any) -> None:
    before = FOUND.setdefault(report.nodeid, ["passed", ""])
    if WORST.index(report.outcome) > WORST.index(before[0]):
        crash = getattr(report.longrepr, "reprcrash", None)
        FOUND[report.nodeid] = [report.outcome, crash.message.split(":")[0].split("\n")[0][:80] if crash else ""]


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        FOUND[report.nodeid] = ["failed", "collection"]


def pytest_unconfigure() -> None:
    Path(os.environ["IMPACT_OUTCOMES"]).write_text(json.dumps(FOUND), encoding="utf-8")
