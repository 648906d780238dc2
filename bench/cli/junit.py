"""The result of a gate as a JUnit file, which CI servers show case by case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple
from xml.etree import ElementTree

from bench.common.errors import BenchError
from bench.common.escaping import escape_terminal
from bench.common.files import write_whole


class JunitCase(NamedTuple):
    """One question of a gate: which part it concerns, the question, and why it did not pass; "" if it passed. `ended` says how
    it did not: skipped if a person must decide, error if it could not be asked. `kind` tells several kinds of failure apart."""

    of: str
    what: str
    problem: str = ""
    ended: Literal["failure", "skipped", "error"] = "failure"
    kind: str = ""


def write_junit(path: Path, suite: str, cases: Sequence[JunitCase]) -> None:
    """Write cases as one suite of a JUnit file.

    Args:
        path: The file; it is replaced.
        suite: The suite's name.
        cases: The cases.

    Raises:
        OSError: The file cannot be written.
    """
    ended = Counter(case.ended for case in cases if case.problem)
    root = ElementTree.Element("testsuites")
    counts = {"failures": ended["failure"], "errors": ended["error"], "skipped": ended["skipped"]}
    attributes = {"name": suite, "tests": f"{len(cases)}", **{name: f"{count}" for name, count in counts.items()}}
    group = ElementTree.SubElement(root, "testsuite", attributes)
    for case in cases:
        of, what, problem = map(escape_terminal, case[:3])  # XML holds no control characters
        shown = ElementTree.SubElement(group, "testcase", classname=of, name=what)
        if problem:
            kind = {"type": case.kind} if case.kind else {}
            ElementTree.SubElement(shown, case.ended, {"message": problem.partition("\n")[0], **kind}).text = problem
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


@contextmanager
def junit_of_refusal(path: Path | None, suite: str, of: str, what: str) -> Iterator[None]:
    """Write a JUnit file with one error if the question cannot be asked.

    Args:
        path: The file; None writes none.
        suite: The suite's name.
        of: The part that the question concerns.
        what: The question.
    """
    try:
        yield
    except BenchError as error:
        if path:
            write_junit(path, suite, [JunitCase(of, what, str(error), "error")])
        raise
