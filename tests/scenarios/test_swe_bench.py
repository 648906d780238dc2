"""Instances in the form of SWE-bench's data set become tasks: a small package of our own, its release and its fix."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import zipfile
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from trials import matrix_of, run_all

from bench.cli.authoring.check import check_pack
from bench.common.errors import PackError, Unavailable
from bench.run.packs import instances_of, load_instances, load_pack
from bench.run.packs.code import code_of
from bench.scenario import Context, Scenario
from scenarios.swe_bench.patches import Unfit, patched

ROOTS = (Path(__file__).parents[2] / "scenarios",)
PREFIX = "ana__spans-7"

RELEASE = {
    "src/spans/__init__.py": "from .parsing import seconds, total\n\n__all__ = ['seconds', 'total']\n",
    "src/spans/parsing.py": '''\
"""Spans of time, such as 1h30m, in seconds."""

import re

UNITS = {"h": 3600, "m": 60, "s": 1}


def seconds(text):
    """The seconds of a span. Raises ValueError for what is none."""
    if not re.fullmatch(r"(\\d+[hms])+", text):
        raise ValueError(f"{text!r} is no span")
    number, unit = re.findall(r"(\\d+)([hms])", text)[0]
    return int(number) * UNITS[unit]


def total(texts):
    return sum(seconds(text) for text in texts)
''',
    "tests/helpers.py": "HOUR = 3600\n",
    "tests/test_spans.py": """\
import pytest
from helpers import HOUR

from spans import seconds, total


@pytest.mark.parametrize("text", ["1h", "60m"])
def test_an_hour(text):
    assert seconds(text) == HOUR


def test_what_is_no_span():
    with pytest.raises(ValueError, match="'1x' is no span"):
        seconds("1x")
""",
    "CHANGES.txt": "1.0: first release\n",
}
FIXED = {
    **RELEASE,
    "src/spans/parsing.py": RELEASE["src/spans/parsing.py"].replace(
        """    number, unit = re.findall(r"(\\d+)([hms])", text)[0]
    return int(number) * UNITS[unit]
""",
        """    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\\d+)([hms])", text))
""",
    ),
    "CHANGES.txt": "1.1: all parts of a span count\n1.0: first release\n",
}
TESTED = {
    **RELEASE,
    "tests/test_spans.py": RELEASE["tests/test_spans.py"]
    + """

@pytest.mark.parametrize(("text", "wanted"), [("1h30m", 5400), ("2m5s", 125)])
def test_all_parts_count(text, wanted):
    assert seconds(text) == wanted


class TestTotal:
    def setup_method(self):
        self.texts = ["1h30m", "30m"]

    def test_total(self):
        assert total(self.texts) == pytest.approx(7200)
""",
    "tests/test_classic.py": """\
import unittest

from spans import seconds


class Classic(unittest.TestCase):
    def test_parts(self):
        self.assertEqual(seconds("1m1s"), 61)

    def test_one_part(self):
        for number in (8, 9):
            with self.subTest(number):
                self.assertEqual(seconds(f"{number}s"), number)
""",
}


def diff(old: dict[str, str], new: dict[str, str]) -> str:
    texts = []
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name, ""), new.get(name, "")
        known = f"a/{name}" if before else "/dev/null"
        texts.append("".join(unified_diff(before.splitlines(True), after.splitlines(True), known, f"b/{name}")))
    return "".join(texts)


GOOD = diff({"a.py": "x = 1\n"}, {"a.py": "x = 2\n"})
FAIL_TO_PASS = [
    "tests/test_spans.py::test_all_parts_count[1h30m-5400]",
    "tests/test_spans.py::test_all_parts_count[2m5s-125]",
    "tests/test_spans.py::TestTotal::test_total",
    "test_parts (tests.test_classic.Classic)",
]
PASS_TO_PASS = [
    "tests/test_spans.py::test_an_hour[1h]",
    "tests/test_spans.py::test_an_hour[60m]",
    "tests/test_spans.py::test_what_is_no_span",
    "test_one_part (tests.test_classic.Classic)",
]
INSTANCE = {
    "repo": "ana/spans",
    "instance_id": PREFIX,
    "base_commit": "0123456789abcdef0123456789abcdef01234567",
    "version": "1.0",
    "created_at": "2025-01-01T00:00:00Z",
    "hints_text": "",
    "environment_setup_commit": "0123456789abcdef0123456789abcdef01234567",
    "problem_statement": 'seconds("1h30m") returns 3600. Only the first part of a span counts; all of them should.\n',
    "patch": diff(RELEASE, FIXED),
    "test_patch": diff(RELEASE, TESTED),
    "FAIL_TO_PASS": json.dumps(FAIL_TO_PASS),
    "PASS_TO_PASS": json.dumps(PASS_TO_PASS),
}


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of instances, with the one of ours, and its repository as an archive, as a forge gives it."""
    monkeypatch.setenv("BENCH_SWE_BENCH", str(tmp_path))
    (tmp_path / "instances.jsonl").write_text(json.dumps(INSTANCE) + "\n")
    with tarfile.open(tmp_path / f"{PREFIX}.tar.gz", "w:gz") as archive:
        for name, text in RELEASE.items():
            member = tarfile.TarInfo(f"spans-0123456/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return tmp_path


@pytest.fixture
def spans(place: Path) -> Scenario:
    assert place.is_dir()
    return load_pack("swe_bench", ROOTS)


def graded(scenario: Scenario, patch: str) -> Any:
    return scenario.grade_outputs({**scenario.reference, "patch": {"patch": patch}})


@pytest.mark.usefixtures("place")
def test_an_instance_becomes_a_sound_pack_and_every_architecture_solves_it() -> None:
    assert instances_of("swe_bench", ROOTS) == ("ana_spans_7",)
    assert [result for _, result in check_pack("swe_bench", ROOTS) if result.status != "ok"] == []


@pytest.mark.usefixtures("place")
def test_under_a_fault_every_architecture_ends_without_an_error() -> None:
    plan = {"plan": [{"point": "output", "effect": "wrong_value", "attempts": [1]}]}
    assert {result.record.outcome for result in run_all(matrix_of("swe_bench", plan))} <= {"solved", "wrong", "gave_up"}


def test_a_model_sees_the_problem_and_the_files_that_the_patch_changes(spans: Scenario) -> None:
    documents = spans.task.documents
    assert list(documents) == ["problem.txt", "CHANGES.txt", "src/spans/parsing.py"]
    assert documents["problem.txt"] == INSTANCE["problem_statement"]
    assert documents["src/spans/parsing.py"] == RELEASE["src/spans/parsing.py"]
    asked = {path.name for path in code_of(ROOTS[0] / "swe_bench", spans).asked}
    assert asked == {"scenario.py", "checks.py", "patches.py", "place.py", "schemas.py"}


def test_an_answer_is_resolved_where_all_named_tests_pass(spans: Scenario) -> None:
    right = graded(spans, str(INSTANCE["patch"]))
    assert right.correct and right.score == 1 and right.note == "resolved"
    half = FIXED | {"src/spans/parsing.py": FIXED["src/spans/parsing.py"].replace('"s": 1', '"s": 2')}
    wrong = graded(spans, diff(RELEASE, half))
    assert not wrong.correct and wrong.parts == {"fail_to_pass": 0.5, "pass_to_pass": 0.75}
    failure = "tests/test_spans.py::test_all_parts_count[2m5s-125]: AssertionError in tests/test_spans.py, line 19"
    assert wrong.note.startswith(f"3 of 8 tests fail: {failure}"), wrong.note


def test_a_failure_of_unittest_is_said_in_its_words(spans: Scenario) -> None:
    code = FIXED["src/spans/parsing.py"].replace(
        "    return sum(int", '    if text == "1m1s":\n        return 62\n    return sum(int'
    )
    grade = graded(spans, diff(RELEASE, FIXED | {"src/spans/parsing.py": code}))
    failure = "test_parts (tests.test_classic.Classic): AssertionError: 62 != 61 in tests/test_classic.py, line 8"
    assert grade.note == f"1 of 8 tests fail: {failure}"


def test_a_patch_cannot_put_other_tests_in_the_place_of_those_that_grade(spans: Scenario) -> None:
    emptied = RELEASE | {"tests/test_spans.py": "def test_what_is_no_span():\n    pass\n"}
    grade = graded(spans, diff(RELEASE, emptied))
    assert not grade.correct and grade.parts == {"fail_to_pass": 0, "pass_to_pass": 1}


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("raise SystemExit", "raised SystemExit"),
        ("import numpy", "ModuleNotFoundError: No module named 'numpy' in src/spans/parsing.py, line 3"),
        ("import os\nos._exit(0)", "ended with exit code 0"),
        ("open('/etc/passwd')", "forbidden: open '/etc/passwd'"),
    ],
)
def test_whatever_a_patched_repository_does_is_one_line(spans: Scenario, broken: str, words: str) -> None:
    old = RELEASE["src/spans/parsing.py"]
    grade = graded(spans, diff({"src/spans/parsing.py": old}, {"src/spans/parsing.py": old.replace("import re", broken)}))
    assert not grade.correct and words in grade.note and "\n" not in grade.note


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("x = 2", "the patch names no file"),
        (GOOD.replace("a.py", "b.py"), "the patch does not apply: error: b.py: No such file or directory"),
        (GOOD.replace("-x = 1", "-x = 3"), "the patch does not apply: error: patch failed: a.py:1"),
        (GOOD.replace("b/a.py", "b/../a.py"), "the patch names ../a.py, which is not in the repository"),
        (GOOD.replace("b/a.py", "/etc/a.py"), "the patch names /etc/a.py, which is not in the repository"),
        (GOOD.replace("a.py", ".git/config"), "the patch names .git/config, which is not in the repository"),
        (f"new file mode 120000\n{GOOD}", "it may not: new file mode 120000"),
        (f"index 0123456..89abcde 120000\n{GOOD}", "it may not: index 0123456..89abcde"),
        (f"rename from a.py\nrename to c.py\n{GOOD}", "it may not: rename from a.py"),
    ],
)
def test_a_patch_that_cannot_be_applied_is_refused_in_a_line(patch: str, words: str) -> None:
    with pytest.raises(Unfit) as refused:
        patched({"a.py": "x = 1\n"}, patch)
    assert words in str(refused.value) and "\n" not in str(refused.value)


def test_a_patch_adds_and_removes_files_and_bears_wrong_counts_of_lines() -> None:
    files = {"a.py": "x = 1\n", "b/c.py": "y = 1\n"}
    added = "diff --git a/d/e.py b/d/e.py\nnew file mode 100644\n--- /dev/null\n+++ b/d/e.py\n@@ -0,0 +1 @@\n+z = 1\n"
    removed = "diff --git a/b/c.py b/b/c.py\ndeleted file mode 100644\n--- a/b/c.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-y = 1\n"
    miscounted = GOOD.replace("@@ -1 +1 @@", "@@ -1,9 +1,9 @@")
    assert patched(files, miscounted + added + removed) == {"a.py": "x = 2\n", "d/e.py": "z = 1\n"}


def test_the_verifier_says_what_does_not_fit(spans: Scenario) -> None:
    diagnosis, patch = spans.task.subtasks
    context = Context(spans.task.documents, {})
    broken = RELEASE | {"src/spans/parsing.py": RELEASE["src/spans/parsing.py"].replace("import re", "import (")}
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (diagnosis, {"file": "spans.py", "cause": "x"}, "there is no file spans.py; the files are CHANGES.txt, src"),
        (patch, {"patch": "no patch"}, "the patch names no file"),
        (patch, {"patch": diff(RELEASE, broken)}, "parsing.py is no valid Python after the patch"),
    ]
    for subtask, value, words in cases:
        objections = [check(subtask.output.model_validate(value), context) for check in subtask.checks]
        assert any(words in objection for objection in objections if objection), (words, objections)


# What a user puts there


def refusal(kind: type[PackError] = PackError) -> str:
    with pytest.raises(kind) as refused:
        load_instances("swe_bench", ROOTS)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_without_instances_or_repositories_the_pack_says_what_to_put_where(place: Path) -> None:
    (place / f"{PREFIX}.tar.gz").unlink()
    words = f"{place} holds 1 instances and the repository of none; put that of {PREFIX} into {place / PREFIX}/ or"
    assert words in refusal(Unavailable)
    (place / "instances.jsonl").unlink()
    assert f"{place} holds no instance of SWE-bench in a .json or .jsonl file" in refusal(Unavailable)
    [(_, result)] = check_pack("swe_bench", ROOTS)
    assert result.status == "note" and result.what.startswith("not available here: ")


@pytest.mark.parametrize("form", ["folder", "zip", "zip without a folder"])
def test_a_repository_may_be_a_folder_or_an_archive_and_the_file_a_list(place: Path, form: str) -> None:
    (place / f"{PREFIX}.tar.gz").unlink()
    (place / "instances.jsonl").unlink()
    listed = [{**INSTANCE, "FAIL_TO_PASS": FAIL_TO_PASS}, {**INSTANCE, "instance_id": "b__b-1"}]
    (place / "instances.json").write_text(json.dumps(listed))
    if form == "folder":
        written(place / PREFIX, RELEASE)
    else:
        with zipfile.ZipFile(place / f"{PREFIX}.zip", "w") as archive:
            for name, text in RELEASE.items():
                archive.writestr(name if "without" in form else f"spans-0123456/{name}", text)
    [scenario] = load_instances("swe_bench", ROOTS)
    assert scenario.grade_outputs(scenario.reference).correct


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"patch": ""}, "instances.jsonl, line 1: is no instance of SWE-bench: patch"),
        ({"FAIL_TO_PASS": "[]"}, "is no instance of SWE-bench: FAIL_TO_PASS"),
        ({"FAIL_TO_PASS": "tests/test_spans.py"}, "is no instance of SWE-bench: FAIL_TO_PASS"),
        ({"PASS_TO_PASS": "[" * 100_000}, "is no instance of SWE-bench: PASS_TO_PASS"),
        ({"patch": GOOD}, "its patch does not fit its repository: the patch does not apply"),
        ({"test_patch": "none"}, "its test_patch does not fit its repository: the patch names no file"),
        ({"patch": diff({}, {"new.py": "x = 1\n"})}, "its patch changes no file that is in"),
        ({"problem_statement": "word " * 20_000}, "tokens, and may have 16,000; take it out"),
    ],
)
def test_an_instance_that_makes_no_task_is_refused_by_its_name(place: Path, changed: dict[str, Any], words: str) -> None:
    (place / "instances.jsonl").write_text(json.dumps({**INSTANCE, **changed}))
    assert words in (line := refusal()) and ("instances.jsonl" in line or PREFIX in line)


def test_a_damaged_file_is_refused_by_its_name(place: Path) -> None:
    for text in ("{", "[" * 100_000):
        (place / "instances.jsonl").write_text(json.dumps(INSTANCE) + f"\n{text}\n")
        assert f"{place}/instances.jsonl, line 2: is no JSON" in refusal()
    (place / "instances.jsonl").write_text(json.dumps(INSTANCE) + f"\n{json.dumps(INSTANCE)}\n")
    assert f"the instance '{PREFIX}' stands twice" in refusal()
    (place / "instances.jsonl").write_text(json.dumps(INSTANCE))
    for content in (b"", b"no archive", (place / f"{PREFIX}.tar.gz").read_bytes()[:100]):
        (place / f"{PREFIX}.tar.gz").write_bytes(content)
        assert f"{PREFIX}.tar.gz: " in refusal()
    (place / f"{PREFIX}.tar.gz").unlink()
    (place / PREFIX).mkdir()
    assert f"{place / PREFIX}: has no Python file" in refusal()


def test_without_git_it_says_so(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert place.is_dir() and "install git" in refusal(Unavailable)
