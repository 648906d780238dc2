"""A pytest plug-in that writes each test's result to the file that IMPACT_OUTCOMES names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

FOUND: dict[str, str] = {}
WORST = ("passed", "skipped", "failed")


def pytest_runtest_logreport(report: Any) -> None:
    before = FOUND.setdefault(report.nodeid, "passed")
    if WORST.index(report.outcome) > WORST.index(before):
        FOUND[report.nodeid] = report.outcome


def pytest_unconfigure() -> None:
    Path(os.environ["IMPACT_OUTCOMES"]).write_text(json.dumps(FOUND), encoding="utf-8")
