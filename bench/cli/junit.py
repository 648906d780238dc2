"""The result of a gate as a JUnit file, which CI servers show case by case."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from bench.common.escaping import escape_terminal
from bench.common.files import write_whole


class JunitCase(NamedTuple):
    """One question of a gate: which part it concerns, the question, and why it failed; "" if it passed."""

    of: str
    what: str
    problem: str = ""


def write_junit(path: Path, suite: str, cases: Sequence[JunitCase]) -> None:
    """Write cases as one suite of a JUnit file.

    Args:
        path: The file; it is replaced.
        suite: The suite's name.
        cases: The cases.

    Raises:
        OSError: The file cannot be written.
    """
    failures = sum(bool(case.problem) for case in cases)
    root = ElementTree.Element("testsuites")
    counts = {"name": suite, "tests": f"{len(cases)}", "failures": f"{failures}", "errors": "0"}
    group = ElementTree.SubElement(root, "testsuite", counts)
    for case in cases:
        of, what, problem = map(escape_terminal, case)  # XML holds no control characters
        shown = ElementTree.SubElement(group, "testcase", classname=of, name=what)
        if problem:
            ElementTree.SubElement(shown, "failure", message=problem.partition("\n")[0]).text = problem
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")
