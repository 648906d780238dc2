"""The pack chain: its sizes differ in their length alone, and its truth is what the sheets add up to."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from bench.cli.authoring.check import check_pack
from bench.common.tokens import count_tokens
from bench.run.packs import load_pack, variants_of
from bench.run.trial.prompt import render
from bench.run.trial.verification import Rejected, judge
from bench.scenario import Json, Scenario

ROOT = Path(__file__).parents[2]
PACK = ROOT / "scenarios" / "chain"
VARIANTS = variants_of(PACK)
sizes = pytest.mark.parametrize("size", VARIANTS)


@cache
def load(size: str) -> Scenario:
    return load_pack(f"chain:{size}", [PACK.parent])


def rejections(scenario: Scenario, outputs: dict[str, Json]) -> list[Rejected]:
    verdicts = judge(scenario.task.subtasks, {**scenario.reference, **outputs}, scenario.task.documents, {})
    return [verdict for verdict in verdicts.values() if isinstance(verdict, Rejected)]


def test_the_generator_writes_the_committed_files_byte_for_byte(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "scenarios.chain.generate", str(tmp_path)], cwd=ROOT, check=True)
    written = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.*")}
    committed = [path for part in ("documents", "reference") for path in (PACK / part).rglob("*.*")]
    assert written == {path.relative_to(PACK): path.read_bytes() for path in committed}


def test_the_longest_pipeline_is_sound() -> None:
    assert [result.problems for _, result in check_pack(f"chain:{VARIANTS[-1]}", [PACK.parent]) if result.problems] == []


@sizes
def test_a_size_is_the_number_of_its_subtasks_and_its_ends_are_named_alike(size: str) -> None:
    names = [subtask.name for subtask in load(size).task.subtasks]
    assert (len(names), names[0], names[-1]) == (int(size), "step_1", "closing")


@sizes
def test_each_subtask_reads_the_output_before_it_and_a_sheet_that_no_other_reads(size: str) -> None:
    task = load(size).task
    before, sheets = zip(*(subtask.reads for subtask in task.subtasks), strict=True)
    assert before == ("opening.json", *(subtask.name for subtask in task.subtasks[:-1]))
    assert sorted({"opening.json", *sheets}) == sorted(task.documents) and len(set(sheets)) == int(size)


@sizes
def test_only_the_last_subtask_is_a_checkpoint(size: str) -> None:
    assert len(load(size).task.stages) == 1


def test_all_calls_and_all_outputs_are_of_one_size_but_for_the_names() -> None:
    scenario = load(VARIANTS[-1])
    texts = {**scenario.task.documents, **{name: json.dumps(output) for name, output in scenario.reference.items()}}
    prompts = []
    for subtask in scenario.task.subtasks:
        read = {name: texts[name] for name in subtask.reads}
        prompts.append(sum(count_tokens(message.content) for message in render(scenario.task, [subtask], read, None, "none")))
    assert max(prompts) - min(prompts) <= 4
    assert len({count_tokens(texts[name]) for name in scenario.reference}) == 1


def test_a_longer_pipeline_begins_with_the_shorter_one() -> None:
    outputs = [list(load(size).reference.values()) for size in VARIANTS]
    assert all(longer[: len(shorter)] == shorter for shorter, longer in pairwise(outputs))


def test_the_first_outputs_are_what_a_person_reckons_from_the_sheets() -> None:
    documents, reference = load("4").task.documents, load("4").reference
    assert documents["opening.json"] == '{"bolts": 250, "nuts": 250, "washers": 250, "pieces": 750}\n'
    assert documents["sheet_01.txt"].splitlines() == [
        "Received: 61 bolts, 15 of them went back.",
        "Issued: 47 washers.",
        "Ordered: 23 nuts, due next week.",
    ]
    assert reference["step_1"] == {"bolts": 250 + 61 - 15, "nuts": 250, "washers": 250 - 47, "pieces": 749}


@sizes
def test_wrong_answers_pass_the_verifier_so_that_only_the_grader_finds_them(size: str) -> None:
    scenario = load(size)
    assert len(scenario.wrong) == 6
    for wrong in scenario.wrong:
        assert rejections(scenario, dict(wrong.outputs)) == []
        assert not scenario.grade_outputs(wrong.outputs).correct, wrong.name


@sizes
def test_keyword_rules_give_a_valid_answer_that_is_not_correct(size: str) -> None:
    scenario = load(size)
    outputs = dict(scenario.baseline(scenario.task.documents))
    assert rejections(scenario, outputs) == []
    assert not scenario.grade_outputs(outputs).correct


def test_the_share_of_items_that_are_right_is_the_score() -> None:
    closing = load("4").reference["closing"]
    grade = load("4").grade_outputs({**load("4").reference, "closing": {**closing, "nuts": closing["nuts"] + 1}})
    assert (grade.correct, grade.note) == (False, "wrong: nuts")
    assert grade.score == pytest.approx(2 / 3)


def test_a_sum_that_does_not_add_up_is_rejected_with_the_right_one() -> None:
    stock = {"bolts": 1, "nuts": 2, "washers": 3, "pieces": 7}
    [rejected] = rejections(load("4"), {"step_2": stock})
    assert (rejected.subtask, rejected.reason) == ("step_2", "check")
    assert rejected.detail == "pieces is 7, but bolts, nuts and washers add up to 6"
