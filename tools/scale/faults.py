"""The engine's tests, run for their outcomes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """What one test of the engine came to: `held`, `failed` or `skipped`."""

    what: str
    outcome: str


def tried(root: Path) -> list[Outcome]:
    """Run the engine's tests, with a Ray of their own each."""
    with tempfile.TemporaryDirectory() as name:
        kept = Path(name) / "tests.xml"
        words = ["-m", "pytest", "-q", "-n", "0", "-m", "slow", f"--junitxml={kept}", "tests/run/engine"]
        subprocess.run([sys.executable, *words], cwd=root, check=False)
        return [_outcome(case) for case in ET.parse(kept).iter("testcase")]


def _outcome(case: ET.Element) -> Outcome:
    name, _, given = case.attrib["name"].removeprefix("test_").partition("[")
    ends = {child.tag for child in case}
    outcome = "failed" if ends & {"failure", "error"} else "skipped" if "skipped" in ends else "held"
    return Outcome(name.replace("_", " ") + (f": {given.rstrip(']')}" if given else ""), outcome)
