"""The result of a gate as a JUnit file. CI servers show such a file case by case."""

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
    """A question of a gate.

    group      what the question is about: the class name of the test case
    question   the question: the name of the test case
    problem    why the question did not pass; "" if it passed
    ended      how it did not pass: failure, skipped if a person must decide, error if the question could not be answered
    kind       the kind of failure
    """

    group: str
    question: str
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
    counts_by_end = Counter(case.ended for case in cases if case.problem)
    root = ElementTree.Element("testsuites")
    counts = {"failures": counts_by_end["failure"], "errors": counts_by_end["error"], "skipped": counts_by_end["skipped"]}
    attributes = {"name": suite, "tests": f"{len(cases)}", **{name: f"{count}" for name, count in counts.items()}}
    suite_element = ElementTree.SubElement(root, "testsuite", attributes)
    for case in cases:
        texts = (case.group, case.question, case.problem)
        group_name, question, problem = map(escape_terminal, texts)  # XML holds no control characters
        element = ElementTree.SubElement(suite_element, "testcase", classname=group_name, name=question)
        if problem:
            kind = {"type": case.kind} if case.kind else {}
            ElementTree.SubElement(element, case.ended, {"message": problem.partition("\n")[0], **kind}).text = problem
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


@contextmanager
def junit_on_error(path: Path | None, suite: str, group: str, question: str) -> Iterator[None]:
    """Write a JUnit file with one error if the question cannot be answered.

    Args:
        path: The file; None writes none.
        suite: The suite's name.
        group: What the question is about, as the class name of the test case.
        question: The question that cannot be answered, as the name of the test case.
    """
    try:
        yield
    except BenchError as error:
        if path:
            write_junit(path, suite, [JunitCase(group, question, str(error), "error")])
        raise
