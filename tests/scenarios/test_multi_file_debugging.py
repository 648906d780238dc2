"""The pack's bugs are ordered by cause, its grader trusts nothing, and its edits mean one thing."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.run.answers import fenced
from bench.run.packs import load_pack
from bench.run.sandbox import run_python
from bench.run.trial.verification import Rejected, check, finding, insufficient, validate
from bench.run.trial.verification import judge as verify_all
from bench.scenario import CODE as CODE_KEY
from bench.scenario import Grade, Json, Output, Scenario, schema_of

ROOT = Path(__file__).parents[2] / "scenarios"
SCENARIO = load_pack("multi_file_debugging", [ROOT])
TASK = SCENARIO.task
CODE = {name: text for name, text in TASK.documents.items() if name.endswith(".py")}
FIXES: list[dict[str, str]] = SCENARIO.reference["fix_generation"]["edits"]
SUBSETS = [subset for size in range(4) for subset in combinations((1, 2, 3), size)]
BUGS = {"one_bug": 1, "two_bugs": 2}
FEWER = {variant: load_pack(f"multi_file_debugging:{variant}", [ROOT]) for variant in BUGS}


def sibling(name: str) -> ModuleType:
    return sys.modules[f"{SCENARIO.grade.__module__.rpartition('.')[0]}.{name}"]


edits, grader = sibling("edits"), sibling("grader")
Edit, Unfit = edits.Edit, edits.Unfit


def answer(outputs: Mapping[str, Json]) -> dict[str, Output]:
    """The reference with some outputs exchanged, as the runtime would hand it to the grader."""
    whole = {**SCENARIO.reference, **outputs}
    return {subtask.name: subtask.output.model_validate(whole[subtask.name]) for subtask in TASK.subtasks}


def grade(outputs: Mapping[str, Json]) -> Grade:
    return SCENARIO.grade(answer(outputs), SCENARIO.truth)


def fixed(*bugs: int) -> dict[str, Json]:
    return {"fix_generation": {"edits": [FIXES[bug - 1] for bug in bugs]}}


def judge(name: str, output: Mapping[str, Json], **outputs: Json) -> str | None:
    """What is said against an output of one subtask: its reason, or None. The rest is the reference's."""
    subtask = TASK.subtask(name)
    valid = validate(subtask, output)
    rejected = (
        valid if isinstance(valid, Rejected) else check(subtask, valid, TASK.documents, answer({**outputs, name: output}))
    )
    return rejected.detail if rejected else None


def test_the_reference_is_correct_with_the_full_score() -> None:
    assert grade({}) == Grade(True, 1.0, {"bug_1": 1.0, "bug_2": 1.0, "bug_3": 1.0}, "all bugs fixed")


def test_the_grader_takes_plain_json_too() -> None:
    assert SCENARIO.grade(SCENARIO.reference, SCENARIO.truth).correct


@pytest.mark.parametrize("wrong", SCENARIO.wrong, ids=lambda wrong: wrong.name)
def test_a_wrong_answer_is_refused(wrong: Any) -> None:
    graded = grade(wrong.outputs)
    assert not graded.correct and graded.score < 1


@pytest.mark.parametrize("outputs", [{}, *(wrong.outputs for wrong in SCENARIO.wrong)])
def test_every_reference_and_wrong_output_passes_all_checks(outputs: Mapping[str, Json]) -> None:
    whole = answer(outputs)
    assert [check(subtask, whole[subtask.name], TASK.documents, whole) for subtask in TASK.subtasks] == [None] * 4


def test_every_subtask_has_a_plausible_wrong_output() -> None:
    assert {name for wrong in SCENARIO.wrong for name in wrong.outputs} == {subtask.name for subtask in TASK.subtasks}


@pytest.mark.parametrize("fixes", SUBSETS, ids=str)
def test_a_bug_counts_as_fixed_only_once_all_before_it_are(fixes: tuple[int, ...]) -> None:
    verdicts = [grade(fixed(*fixes)).parts[f"bug_{bug}"] == 1 for bug in (1, 2, 3)]
    assert verdicts == [all(before in fixes for before in range(1, bug + 1)) for bug in (1, 2, 3)]


def seen_with(*bugs: int) -> Json:
    """All that the grader can observe of the code with these bugs fixed."""
    edited = edits.apply_edits(CODE, [Edit(**FIXES[bug - 1]) for bug in bugs])
    cases = json.loads((SCENARIO.truth / "cases.json").read_text(encoding="utf-8"))
    probe = (SCENARIO.truth / "probe.py").read_text(encoding="utf-8")
    result = run_python(edited, probe, [case["input"] for case in cases], grader.LIMITS)
    assert result.ok
    return result.value


def test_while_bug_1_stands_nothing_can_be_seen_of_the_others() -> None:
    assert seen_with() == seen_with(2) == seen_with(3) == seen_with(2, 3)


def test_while_bug_2_stands_bug_3_is_not_reached() -> None:
    assert seen_with(1) == seen_with(1, 3)
    assert all("ReportError: last rolling sum" in case["report"]["raised"] for case in seen_with(1))


def test_once_bugs_1_and_2_are_fixed_bug_3_raises() -> None:
    assert all("TypeError" in case["report"]["raised"] for case in seen_with(1, 2))


TRACED = """
import traceback, pipeline
def frame(one):
    return f'  File "{one.filename.rpartition("/")[2]}", line {one.lineno}, in {one.name}\\n    {one.line}'
def main(lines):
    try:
        return pipeline.run(lines)
    except Exception as error:
        said = [frame(one) for one in traceback.extract_tb(error.__traceback__)[1:]]
        return "\\n".join([*said, traceback.format_exception_only(error)[-1]])
"""


@pytest.mark.parametrize("scenario", [SCENARIO, *FEWER.values()], ids=lambda scenario: scenario.variant)
def test_the_reported_failure_is_what_the_code_does(scenario: Scenario) -> None:
    code = {name: text for name, text in scenario.task.documents.items() if name.endswith(".py")}
    lines = ["d1,20", "d1,15", "d2,40", "d3,30", "d4,50"]
    failure, _, expected = scenario.task.documents["failure.txt"].partition("Expected:\n")
    shown = failure.partition("Traceback (most recent call last):\n")[2]
    assert run_python(code, TRACED, lines).value.strip() == shown.strip()
    repaired = edits.apply_edits(code, [Edit(**fix) for fix in scenario.reference["fix_generation"]["edits"]])
    assert run_python(repaired, TRACED, lines).value == json.loads(expected)


def test_the_keyword_baseline_does_not_solve_it() -> None:
    graded = grade(SCENARIO.baseline(TASK.documents))
    assert not graded.correct and graded.score < 0.5


def test_no_secret_stands_in_a_document_or_an_instruction() -> None:
    shown = [*TASK.documents.values(), TASK.role, *(subtask.instructions for subtask in TASK.subtasks)]
    assert not [secret for secret in SCENARIO.secrets for text in shown if secret in text]
    assert any(secret in fix["replace"] for secret in SCENARIO.secrets for fix in FIXES)


def test_no_expected_value_enters_the_sandbox() -> None:
    assert "expected" not in (SCENARIO.truth / "probe.py").read_text(encoding="utf-8").partition('"""\n')[2]


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, True), (1, 1.0), ("1", 1), ([1], [1, 2]), ({"a": 1}, {"b": 1}), ({"a": 1}, {"a": "1"}), (None, False), ([], {})],
)
def test_values_of_different_types_are_not_the_same(left: Json, right: Json) -> None:
    assert not grader.same(left, right) and not grader.same(right, left)
    assert grader.same(left, json.loads(json.dumps(left)))


@pytest.mark.parametrize("seen", [None, {}, [], [1] * 9, [[]] * 9, [{"totals": {}}] * 9, "fixed"])
def test_nonsense_from_the_sandbox_fixes_nothing(seen: Json) -> None:
    expected = [{"totals": 1, "rolling": 1, "report": 1}] * 9
    assert set(grader.verdicts(seen, expected).values()) == {False}


def test_edits_that_do_not_fit_are_graded_as_wrong() -> None:
    graded = grade({"fix_generation": {"edits": [{"file": "pipeline.py", "find": "no such line", "replace": "x"}]}})
    assert (graded.correct, graded.score) == (False, 0.0) and "does not occur" in graded.note


BUG = SCENARIO.reference["analysis"]["bugs"][0]
EDIT = FIXES[0]


@pytest.mark.parametrize(
    ("name", "output", "reason"),
    [
        ("analysis", {"needs_fix": True, "bugs": [{**BUG, "line_text": "no such line"}], "confidence": 1}, "occur"),
        ("analysis", {"needs_fix": True, "bugs": [{**BUG, "file": "validator.py"}], "confidence": 1}, "occur"),
        ("analysis", {"needs_fix": False, "bugs": [BUG], "confidence": 1}, "needs_fix is false"),
        ("analysis", {"needs_fix": True, "bugs": [], "confidence": 2}, "less than or equal"),
        ("fix_generation", {"edits": [{**EDIT, "find": "totals = {}x"}, *FIXES[1:]]}, "does not occur"),
        ("fix_generation", {"edits": [EDIT, EDIT, FIXES[2]]}, "another edit"),
        ("fix_generation", {"edits": [{**EDIT, "replace": EDIT["find"]}, *FIXES[1:]]}, "nothing changes"),
        ("fix_generation", {"edits": [{**EDIT, "replace": "totals[day] = ("}, *FIXES[1:]]}, "no valid Python"),
        ("fix_generation", {"edits": [{**EDIT, "replace": "x = '\0'"}, *FIXES[1:]]}, "no valid Python"),
        ("fix_generation", {"edits": FIXES[:2]}, "no edit changes that file"),
        ("fix_generation", {"edits": [{**EDIT, "file": "failure.txt"}]}, "Input should be"),
        ("validation", {"verdicts": [{"bug": 1, "fixed": True}], "problems": [], "approved": True}, "each bug"),
        (
            "validation",
            {"verdicts": [{"bug": n, "fixed": n < 3} for n in (1, 2, 3)], "problems": [], "approved": True},
            "approved is true",
        ),
        (
            "validation",
            {"verdicts": [{"bug": n, "fixed": True} for n in (1, 2, 3)], "problems": [], "approved": False},
            "approved is false",
        ),
        ("synthesis", {"summary": "s", "root_cause": "r", "files_changed": []}, "is empty"),
    ],
)
def test_what_code_can_verify_is_rejected_with_a_reason(name: str, output: Mapping[str, Json], reason: str) -> None:
    assert reason in (judge(name, output) or "")


def test_a_report_names_only_files_that_were_edited() -> None:
    report = {"summary": "s", "root_cause": "r", "files_changed": ["pipeline.py", "validator.py"]}
    only_pipeline = {"edits": FIXES[:2]}
    assert "validator.py" in (judge("synthesis", report, fix_generation=only_pipeline) or "")


@pytest.mark.parametrize(("bugs", "confidence", "weak"), [([], 0.9, True), ([BUG], 0.59, True), ([BUG], 0.6, False)])
def test_an_empty_or_unsure_analysis_is_too_weak(bugs: list[Json], confidence: float, weak: bool) -> None:
    subtask = TASK.subtask("analysis")
    output = subtask.output.model_validate({"needs_fix": True, "bugs": bugs, "confidence": confidence})
    assert (insufficient(subtask, output) is not None) == weak


@pytest.mark.parametrize("name", ["fix_generation", "validation"])
def test_a_subtask_is_skipped_only_where_nothing_needs_a_fix(name: str) -> None:
    skip = TASK.subtask(name).skip
    assert skip is not None and skip(answer({})) is None
    nothing = {"needs_fix": False, "bugs": [], "confidence": 0.9}
    skipped = skip(answer({"analysis": nothing}))
    assert skipped is not None
    assert judge(name, skipped.model_dump(), analysis=nothing, fix_generation={"edits": []}) is None


def test_a_refusal_of_the_edits_reopens_fix_generation() -> None:
    subtask = TASK.subtask("validation")
    refused = {"verdicts": [{"bug": 2, "fixed": False}], "problems": ["still\n short"], "approved": False}
    violation = finding(subtask, subtask.output.model_validate(refused))
    assert violation is not None and violation.subtask == "fix_generation"
    assert "bug 2" in violation.detail and "still short" in violation.detail
    assert finding(subtask, answer({})["validation"]) is None


SOURCE = "def f(x):\n    if x:\n        return 1\n    return 2\n"


@pytest.mark.parametrize(
    ("find", "replace", "expected"),
    [
        ("return 1", "return 3", SOURCE.replace("1", "3")),
        ("\n        return 1  \n", "\n  return 3 \n\n", SOURCE.replace("1", "3")),
        ("if x:\n    return 1", "while x:\n    x -= 1", "def f(x):\n    while x:\n        x -= 1\n    return 2\n"),
        ("return 2", "if x:\n    return 2\nreturn 3", SOURCE.replace("return 2", "if x:\n        return 2\n    return 3")),
        ("return 2", "", SOURCE.replace("    return 2\n", "")),
    ],
)
def test_an_edit_replaces_whole_lines_and_keeps_their_indentation(find: str, replace: str, expected: str) -> None:
    edit = Edit(file="pipeline.py", find=find, replace=replace)
    assert edits.apply_edits({"pipeline.py": SOURCE}, [edit]) == {"pipeline.py": expected}


@pytest.mark.parametrize("find", ["return", "x:", "return 1\n\nreturn 2", " \n "])
def test_a_part_of_a_line_or_lines_that_do_not_follow_do_not_match(find: str) -> None:
    assert edits.places(SOURCE, find) == []


def test_a_line_that_stands_there_twice_is_ambiguous() -> None:
    result = edits.apply_edits({"pipeline.py": "a\nb\na\n"}, [Edit(file="pipeline.py", find="a", replace="c")])
    assert isinstance(result, Unfit) and "occurs 2 times" in result.reason


any_text = st.text(st.sampled_from("ab \t\n\r\x0c\0:(é"), max_size=12)


@given(any_text, st.lists(st.tuples(any_text.filter(bool), any_text), max_size=3))
def test_edits_never_raise_on_arbitrary_text(source: str, pairs: list[tuple[str, str]]) -> None:
    made = [Edit(file="pipeline.py", find=find, replace=replace) for find, replace in pairs]
    result = edits.apply_edits({"pipeline.py": source}, made)
    if not isinstance(result, Unfit):
        assert len(made) != 1 or result["pipeline.py"] != source
    elif "does not occur" in result.reason:
        assert any(edits.places(source, find) == [] for find, _ in pairs)


@given(st.permutations(FIXES), st.sampled_from(["", "  ", "\t", "\n", "\n        "]))
def test_the_reference_edits_apply_exactly_in_any_order_and_indentation(order: list[dict[str, str]], pad: str) -> None:
    made = [Edit(file=fix["file"], find=pad + fix["find"], replace=pad + fix["replace"]) for fix in order]
    expected = dict(CODE)
    for fix in FIXES:
        expected[fix["file"]] = expected[fix["file"]].replace(fix["find"], fix["replace"])
    assert edits.apply_edits(CODE, made) == expected


# With fewer bugs


def test_the_variants_with_fewer_bugs_leave_what_the_paper_s_variant_asks_as_it_is(tmp_path: Path) -> None:
    without = shutil.ignore_patterns("variants.py")
    shutil.copytree(ROOT / "multi_file_debugging", tmp_path / "multi_file_debugging", ignore=without)
    assert load_pack("multi_file_debugging", [tmp_path]).asked == SCENARIO.asked
    assert CODE_KEY not in json.dumps(schema_of(TASK.subtask("fix_generation").output))


@pytest.mark.parametrize("variant", FEWER)
def test_a_variant_has_the_first_bugs_and_the_same_failure(variant: str) -> None:
    documents = FEWER[variant].task.documents
    assert documents["failure.txt"] == TASK.documents["failure.txt"]
    standing = [fix["find"] in documents[fix["file"]] for fix in FIXES]
    assert standing == [number <= BUGS[variant] for number in (1, 2, 3)]
    assert [fix["replace"] in documents[fix["file"]] for fix in FIXES] == [not stands for stands in standing]


@pytest.mark.parametrize("variant", FEWER)
def test_in_a_variant_the_reference_is_right_and_each_wrong_answer_passes_all_checks_and_is_refused(variant: str) -> None:
    scenario = FEWER[variant]
    for outputs in [{}, *(wrong.outputs for wrong in scenario.wrong)]:
        whole = {**scenario.reference, **outputs}
        verdicts = verify_all(scenario.task.subtasks, whole, scenario.task.documents, {})
        assert [verdict for verdict in verdicts.values() if isinstance(verdict, Rejected)] == [], outputs
        graded = scenario.grade_outputs(whole)
        assert graded.correct is (not outputs) and (graded.score < 1) is bool(outputs)
    assert {name for wrong in scenario.wrong for name in wrong.outputs} == {subtask.name for subtask in scenario.task.subtasks}


def test_of_two_bugs_the_second_counts_as_fixed_only_after_the_first() -> None:
    two = FEWER["two_bugs"]
    first, second = two.reference["fix_generation"]["edits"]
    limit = {"file": "validator.py", "find": 'report["alerts"] = find_alerts(rolling, list(totals), int(settings["limit"]))'}
    spoilt = {**limit, "replace": 'report["alerts"] = []'}
    parts = [
        two.grade_outputs({**two.reference, "fix_generation": {"edits": edits}}).parts
        for edits in ([], [second], [first], [first, second, spoilt], [first, second])
    ]
    none, half, whole = {"bug_1": 0.0, "bug_2": 0.0}, {"bug_1": 1.0, "bug_2": 0.0}, {"bug_1": 1.0, "bug_2": 1.0}
    assert parts == [none, none, half, half, whole]


@pytest.mark.parametrize("variant", FEWER)
def test_the_code_of_an_edit_stands_in_a_block_where_the_format_has_blocks(variant: str) -> None:
    subtask = FEWER[variant].task.subtask("fix_generation")
    written = fenced.write_answer(FEWER[variant].reference["fix_generation"], schema_of(subtask.output))
    assert list(written.blocks)[:2] == ["edits[0].find", "edits[0].replace"] and "amount" not in json.dumps(written.value)
    nothing = {"needs_fix": False, "bugs": [], "confidence": 0.9}
    analysis = FEWER[variant].task.subtask("analysis").output.model_validate(nothing)
    assert subtask.skip is not None and isinstance(subtask.skip({"analysis": analysis}), subtask.output)
