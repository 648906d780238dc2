"""What is promised, and the tests that try it: each promise is tried by tests that the suite has, and counted from what pytest
reports of them."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from reliability.kept import Measured, Tried
from reliability.measured import measured_in

ROOT = Path(__file__).parents[3]
EXAMPLES = re.compile(r"(\d+) passing, (\d+) failing, and \d+ invalid test cases")
PROPERTY = "  - Stopped because "
"""A line for each property that hypothesis tried."""


@dataclass(frozen=True)
class Promise:
    """A promise and its tests: files, or files' tests. `long` has their long forms, too."""

    name: str
    promised: str
    tried: str
    tests: tuple[str, ...]
    long: bool = False


WORST_BODY = "test_the_worst_body_is_told_in_a_second_of_processor_and_within_200_megabytes"
WORST_STREAM = "test_any_stream_within_the_bound_is_told_in_a_second_of_processor"
WORST_REQUEST = "test_while_eight_bad_megabytes_come_in_everybody_else_is_answered_within_a_second"
USAGES = ("test_a_zero_where_tokens_were_is_no_count", "test_an_empty_reply_may_have_no_tokens")
FIELDS = (
    "test_a_field_that_is_refused_is_named_with_the_key_that_leaves_it_out",
    "test_a_field_is_left_out_of_the_request_its_messages_and_their_tool_calls",
    "test_what_is_left_out_is_among_the_parameters_where_something_is",
)
PROMISES = (
    Promise(
        "hostile answers",
        "code that a model wrote reaches nothing, scores nothing by it, and leaves nothing behind",
        "attacks run in the sandbox, one each",
        ("tests/run/sandbox",),
    ),
    Promise(
        "answers that attack their judges",
        "whatever an answer does to its check, its grader or the count of its tokens, the run goes on, and it is paid once",
        "whole runs on a hostile server, of which stalls and memory are measured; examples drawn by hypothesis",
        (
            "tests/suite/test_hostile_answers.py",
            "tests/run/serve/test_long_requests.py",
            "tests/run/experiment/test_grading.py",
            "tests/run/trial/test_checks.py",
            "tests/run/trial/test_largeness.py",
            "tests/common/test_tokens.py",
            "tests/common/test_errors.py",
            "tests/common/test_bounds.py",
        ),
        long=True,
    ),
    Promise(
        "any reply",
        "whatever an endpoint answers becomes a reply or one named failure, within bounds",
        "a server on loopback, and examples drawn by hypothesis",
        (
            "tests/run/openai/test_model.py",
            "tests/run/openai/test_documents.py",
            "tests/run/answers",
            "tests/run/trial/test_decoding.py",
            "tests/run/trial/test_effects.py",
        ),
    ),
    Promise(
        "providers' words",
        "an event of the endpoint is no answer of the model, and no word that is not known is one",
        "each word of the table in each spelling, errors in each place, and words drawn by hypothesis",
        ("tests/run/openai/test_words.py", "tests/run/openai/test_replies.py"),
    ),
    Promise(
        "what goes back",
        "what came beside a reply and its tool calls goes back to the provider to the letter, live and replayed",
        "conversations over the endpoint in four ways, and fields drawn by hypothesis",
        ("tests/run/endpoint/test_given_back.py", "tests/record/test_extra_fields.py", "tests/run/openai/test_tools.py"),
    ),
    Promise(
        "usage that nobody told",
        "a usage of 0 where tokens were is no usage: our own count stands in its place, and a budget holds",
        "usages in each form that providers send, and runs that reach their budget",
        (*(f"tests/run/openai/test_replies.py::{test}" for test in USAGES), "tests/run/experiment/test_budget.py"),
    ),
    Promise(
        "fields that a provider refuses",
        "any field of a request but its model and messages can be left out, and the line that says so names the key",
        "refusals in the words of several providers",
        tuple(f"tests/run/openai/test_model.py::{test}" for test in FIELDS),
    ),
    Promise(
        "eight megabytes of the worst",
        "wherever a text is read, 8 MB of the worst take at most 1 s of processor and 200 MiB, and nobody else waits for 1 s",
        "twelve readers, replies and streams, each in a process that is measured, and `bench serve` asked meanwhile",
        (
            "tests/common/test_bounds.py",
            f"tests/run/openai/test_documents.py::{WORST_BODY}",
            f"tests/run/openai/test_streams.py::{WORST_STREAM}",
            f"tests/run/serve/test_serving.py::{WORST_REQUEST}",
        ),
        long=True,
    ),
    Promise(
        "any file",
        "a damaged pack, record, manifest or text is one clear line",
        "examples drawn by hypothesis, files cut and changed",
        (
            "tests/test_bounded_models.py",
            "tests/cli/test_named_files.py",
            "tests/common/test_toml.py",
            "tests/run/packs/test_refusals.py",
            "tests/run/experiment/test_shape.py",
            "tests/run/endpoint/test_wire.py",
            "tests/worlds/run/driver/test_reading.py",
            "tests/worlds/run/environment/test_final.py",
        ),
    ),
    Promise(
        "any table",
        "rows as people have them become tasks, or one clear line",
        "tables written in many ways and drawn by hypothesis",
        ("tests/cli/authoring/test_tables.py", "tests/cli/authoring/test_rows.py"),
    ),
    Promise(
        "drafts",
        "what a reasoning model thinks before its answer is recorded, and is neither read nor struck",
        "drafts drawn by hypothesis, every effect behind drafts, whole runs",
        ("tests/run/trial/test_drafts.py", "tests/run/trial/test_pieces.py", "tests/run/experiment/test_draft_tags.py"),
    ),
    Promise(
        "commands",
        "a command that cannot be started is one line or an error, and no agent that gave up",
        "scripts and programs that no kernel starts",
        ("tests/wire/test_program.py", "tests/worlds/run/driver/test_command.py"),
    ),
    Promise(
        "sinks",
        "text from outside stays text in terminal, HTML, Markdown, CSV and file names",
        "one corpus of hostile texts through each sink",
        ("tests/read/render/test_escaping.py", "tests/common/test_paths.py"),
    ),
    Promise(
        "secrets",
        "the key stands in nothing that is written",
        "everything run with a marked key, and servers that echo it",
        ("tests/cli/test_secrets.py", "tests/wire/test_blotting.py", "tests/run/openai/test_proxies.py"),
    ),
    Promise(
        "the door of `bench serve`",
        "without its token, from a web page or with too much, nobody gets anything",
        "requests over HTTP",
        ("tests/wire/test_access_guard.py", "tests/run/serve"),
    ),
    Promise(
        "integrity",
        "`bench verify` names what was changed, lost, doubled or reordered, and a report refuses it",
        "records tampered with",
        ("tests/record/test_verify.py", "tests/record/test_chain.py"),
    ),
    Promise(
        "kills and disks",
        "killed in any write, refused by a disk, its clock set back: a run goes on as if nothing had happened",
        "SIGKILL at each write, at random bytes and moments; errors of the disk; a second runner",
        ("tests/suite/test_sabotage.py", "tests/suite/test_kill.py", "tests/record/test_store.py"),
        long=True,
    ),
    Promise(
        "weather of an API",
        "passing trouble is waited out within bounds; what nobody read costs nothing",
        "servers on loopback that refuse, hang, cut and recover",
        (
            "tests/run/trial/test_caller.py",
            "tests/run/trial/test_gate.py",
            "tests/run/experiment/test_trouble.py",
        ),
    ),
)


def tried(promise: Promise) -> tuple[Tried, list[Measured]]:
    """Run a promise's tests, and return what they measured."""
    tests = [test for test in promise.tests if (ROOT / test.partition("::")[0]).exists()]
    forms = "not slow" if promise.long else "not slow and not endurance"
    with tempfile.TemporaryDirectory() as folder:
        junit = Path(folder) / "told.xml"
        counted = (f"--junitxml={junit}", "-o", "junit_family=xunit1", "--hypothesis-show-statistics")
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", forms, *counted]
        done = subprocess.run([*command, *tests], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):  # of tests, some may have failed
            raise SystemExit(f"{promise.name}: pytest said: {done.stdout[-500:]}{done.stderr[-500:]}")
        cases = list(ElementTree.parse(junit).iter("testcase"))
    examples = [tuple(map(int, numbers)) for numbers in EXAMPLES.findall(done.stdout)]
    skipped = Counter(skip.get("message", "") for case in cases if (skip := case.find("skipped")) is not None)
    ran = [case for case in cases if case.find("skipped") is None]
    further = sum(passing + failing for passing, failing in examples) - done.stdout.count(PROPERTY)
    failures = sum(case.find("failure") is not None or case.find("error") is not None for case in ran)
    untried = "; ".join(f"{count} tests ({why})" for why, count in skipped.items())
    return Tried(promise.name, sum(map(_tries, ran)) + max(further, 0), failures, untried), measured_in(ran)


def _tries(case: ElementTree.Element) -> int:
    values = (entry.get("value", "1") for entry in case.iter("property") if entry.get("name") == "tries")
    return int(next(values, "1"))


def all_tried(names: Container[str]) -> Iterator[tuple[Tried, list[Measured]]]:
    """Yield the results of the promises of these names."""
    for promise in PROMISES:
        if promise.name in names:
            yield tried(promise)
